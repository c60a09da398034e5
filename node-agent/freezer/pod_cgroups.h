// Finds and opens the cgroup of a pod, in the layouts that kubelet makes:
//   cgroupfs driver  kubepods[/burstable|/besteffort]/pod<uid>
//   systemd driver   kubepods.slice/[kubepods-burstable.slice/]kubepods-burstable-pod<uid_>.slice
// both below kubelet's --cgroup-root, if it has one. Where the names differ, a bounded scan finds
// the directory by the pod's UID.
// SOURCE: kubernetes pkg/kubelet/cm/cgroup_manager_linux.go (ToSystemd, ToCgroupfs),
// qos_container_manager; freezer.md 3.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/api/pod.h"
#include "linux/file_descriptor.h"
#include "node-agent/freezer/freezer.h"

namespace agent {

using kube::QosClass;

// Returns true for a UID that may become part of a path: 1 to 64 letters, digits and dashes.
bool is_pod_uid(std::string_view uid);

// Returns true if a directory of this name belongs to the pod: "pod<uid>" or "…-pod<uid with
// _>.slice".
bool is_pod_directory_name(std::string_view name, std::string_view uid);

// Returns where kubelet puts all of its pods, in both spellings (systemd's first), as
// candidate_paths() does.
std::vector<std::string> kubepods_paths(std::string_view kubelet_root);

// Returns where kubelet may put the pod, likeliest first, relative to the folder of kubepods.
// `kubelet_root`: kubelet's --cgroup-root without slashes at its ends, usually empty.
std::vector<std::string> candidate_paths(std::string_view uid, QosClass qos,
                                         std::string_view kubelet_root);

inline constexpr std::size_t kScanDepthMax = 6;
inline constexpr std::size_t kScanDirectoriesMax = 20'000;

// An open pod cgroup.
struct PodCgroup {
  std::string path;  // relative to the root, for the journal and for people
  os::FileDescriptor directory;
};

// Everything below one directory handle; the path of that directory is a constructor parameter, so
// that a temporary directory of ordinary files does for tests. Symbolic links and ".." are refused
// by the kernel (openat2). Mounts are followed: in a container the root is a plain directory with
// the node's kubepods mounted in it. Any thread.
class PodCgroups {
 public:
  // kNotFound or kPermissionDenied when the directory cannot be opened; kInvalidArgument when the
  // kernel could not take a pod's path below this kubelet_root.
  static base::Result<PodCgroups> open(const std::string& root, const std::string& kubelet_root);

  // kNotFound: there is none (not yet, or gone); kInvalidArgument: the UID is not one.
  // Cost: three opens; a scan of the tree when all of them fail.
  base::Result<PodCgroup> find(std::string_view uid, QosClass qos) const;

  // Returns the cgroup at a path that find() returned earlier, of this process or of one before it.
  // kInvalidArgument: its last component does not name the UID.
  base::Result<PodCgroup> at(const std::string& path, std::string_view uid) const;

  const std::string& root() const { return root_; }

 private:
  PodCgroups(std::string root, std::string kubelet_root, os::FileDescriptor directory);

  base::Result<PodCgroup> scan(std::string_view uid) const;

  std::string root_;
  std::string kubelet_root_;
  os::FileDescriptor directory_;
};

// Returns the name of a cgroup in the pod's that belongs to the container runtime; "" if there is
// none. CRI-O with `conmon_cgroup = "pod"` puts its monitor there (crio-conmon-<id>, with .scope
// under systemd): it would be frozen with the pod, and then the container's output is not read and
// its end is not reported. Cost: reads the directory.
std::string runtime_cgroup_in(const PodCgroup& cgroup);

// Returns the freezer of an open pod cgroup, of the version that it is: checked per pod, since a
// hybrid machine has both. kNotFound: the cgroup is gone or has no freezer.
base::Result<std::unique_ptr<Freezer>> open_freezer(const PodCgroup& cgroup);

}  // namespace agent
