#include "node-agent/freezer/pod_cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <optional>
#include <utility>

#include "linux/cgroup_file.h"
#include "linux/system_error.h"
#include "node-agent/freezer/cgroup1_freezer.h"
#include "node-agent/freezer/cgroup2_freezer.h"

// From a pod's UID to an open directory. kubelet's names are known, so three or four opens find
// nearly every pod; where a distribution names its cgroups otherwise, a search finds the directory
// whose name contains the UID. Everything is opened below one directory handle by openat2 with
// RESOLVE_BENEATH, so that no link, no ".." and no journal line leads out of it.
namespace agent {
namespace {

constexpr std::size_t kPodUidLengthMax = 64;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY;

std::string with_underscores(std::string_view text) {
  std::string out{text};
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// Returns the components of a path without empty ones ("//", a slash at either end).
std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash != 0) parts.emplace_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += (path.empty() ? "" : "/") + part;
  return path;
}

// systemd's way: each component's dashes become underscores, then a-b.slice lives in a.slice.
// For example {"kubepods", "burstable", "pod1-2"} is
//
//   kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice
std::string systemd_path(const std::vector<std::string>& parts) {
  std::string name;
  std::vector<std::string> slices;
  for (const std::string& part : parts) {
    name += (name.empty() ? "" : "-") + with_underscores(part);
    slices.push_back(name + ".slice");
  }
  return join(slices);
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool names_kubepods(std::string_view name) {
  return name.find("kubepods") != name.npos;
}

// Any pod's own directory: the scan does not look inside, what is there belongs to the pod.
bool looks_like_a_pod(std::string_view name) {
  return name.starts_with("pod") || name.find("-pod") != name.npos;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Returns the names of the directories in an open directory, sorted so that a scan takes the same
// way each time; at most kScanDirectoriesMax. Some file systems do not fill in d_type: such an
// entry is kept, and open_beneath() refuses it if it is not a directory.
std::vector<std::string> subdirectories(os::FileDescriptor directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseDirectory> stream{::fdopendir(directory.get())};
  if (!stream) return names;
  directory.release();  // The stream closes it.
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)) {
      continue;
    }
    names.emplace_back(name);
    if (names.size() >= kScanDirectoriesMax) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

// A UID becomes a part of a path and of a line of the journal. This alphabet excludes "/", "..",
// blanks and line ends. UIDs of static pods are hashes without dashes, so the form of a UUID is not
// asked for.
bool is_pod_uid(std::string_view uid) {
  if (uid.empty() || uid.size() > kPodUidLengthMax) return false;
  return std::all_of(uid.begin(), uid.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// In the name of a slice a dash stands between parent and child, so the UID's dashes are
// underscores there.
bool is_pod_directory_name(std::string_view name, std::string_view uid) {
  if (!is_pod_uid(uid)) return false;
  if (name == "pod" + std::string{uid}) return true;
  const std::string unit = "-pod" + with_underscores(uid) + ".slice";
  return name.size() > unit.size() && name.ends_with(unit);
}

std::vector<std::string> kubepods_paths(std::string_view kubelet_root) {
  std::vector<std::string> parts = split(kubelet_root);
  parts.emplace_back("kubepods");
  return {systemd_path(parts), join(parts)};
}

// kubelet puts Guaranteed pods directly below kubepods, the others below their class.
// The class is that of the API server, which does not change in a pod's life, so two paths are
// enough.
std::vector<std::string> candidate_paths(std::string_view uid, QosClass qos,
                                         std::string_view kubelet_root) {
  std::vector<std::string> parts = split(kubelet_root);
  parts.emplace_back("kubepods");
  if (qos == QosClass::kBurstable) parts.emplace_back("burstable");
  if (qos == QosClass::kBestEffort) parts.emplace_back("besteffort");
  parts.push_back("pod" + std::string{uid});
  return {systemd_path(parts), join(parts)};
}

PodCgroups::PodCgroups(std::string root, std::string kubelet_root, os::FileDescriptor directory)
    : root_{std::move(root)},
      kubelet_root_{std::move(kubelet_root)},
      directory_{std::move(directory)} {}

// The longest possible path is checked once, here: later a path that is too long would look like a
// pod that is missing.
base::Result<PodCgroups> PodCgroups::open(const std::string& root,
                                          const std::string& kubelet_root) {
  if (candidate_paths(std::string(kPodUidLengthMax, '0'), QosClass::kBestEffort, kubelet_root)
          .front()  // systemd's repeats every parent's name
          .size() >= PATH_MAX) {
    return base::invalid_argument("kubelet's cgroup root of " +
                                  std::to_string(kubelet_root.size()) +
                                  " characters: the path of a pod below it would be too long");
  }
  os::FileDescriptor directory{::open(root.c_str(), kDirectoryFlags | O_CLOEXEC)};
  if (!directory.is_open()) return os::error_from_errno("cgroup root " + root, errno);
  return PodCgroups{root, kubelet_root, std::move(directory)};
}

// The path may come from a journal or from a scan. Two checks keep a wrong one from freezing
// anything but the pod: the last component must contain the UID, and open_beneath() follows no link
// and does not leave the root.
base::Result<PodCgroup> PodCgroups::at(const std::string& path, std::string_view uid) const {
  if (!is_pod_directory_name(base_name(path), uid)) {
    return base::invalid_argument("cgroup " + path + ": its name does not contain the pod's uid " +
                                  std::string{uid});
  }
  if (path.find('\0') != std::string::npos) {  // the kernel would see a shorter path
    return base::invalid_argument("the cgroup path of pod " + std::string{uid} + " contains a NUL");
  }
  base::Result<os::FileDescriptor> directory =
      os::open_beneath(directory_.get(), path, kDirectoryFlags);
  if (!directory) return directory.error();
  return PodCgroup{path, *std::move(directory)};
}

// Cost: one or two opens for nearly every pod. One without a cgroup costs a search through at most
// kScanDirectoriesMax directories.
base::Result<PodCgroup> PodCgroups::find(std::string_view uid, QosClass qos) const {
  if (!is_pod_uid(uid)) {
    return base::invalid_argument("pod uid \"" + std::string{uid} + "\": not a uid");
  }
  // kubelet's two layouts, systemd's and cgroupfs's. Only where both are missing is the tree
  // searched: that costs as much as there are cgroups.
  for (const std::string& path : candidate_paths(uid, qos, kubelet_root_)) {
    base::Result<PodCgroup> cgroup = at(path, uid);
    if (cgroup || cgroup.error().code != base::Code::kNotFound) return cgroup;
  }
  return scan(uid);
}

// Breadth first below the root, into every directory whose name does not look like a pod's. A pod
// is taken only where a directory above it is called kubepods.
base::Result<PodCgroup> PodCgroups::scan(std::string_view uid) const {
  struct Place {
    std::string path;
    std::size_t depth;
    bool in_kubepods;
  };
  std::deque<Place> queue{{".", 0, names_kubepods(root_)}};
  std::size_t seen = 0;
  while (!queue.empty()) {
    const Place place = std::move(queue.front());
    queue.pop_front();
    base::Result<os::FileDescriptor> directory =
        os::open_beneath(directory_.get(), place.path, kDirectoryFlags);
    if (!directory) continue;  // It went away meanwhile.
    for (const std::string& name : subdirectories(*std::move(directory))) {
      // The search runs in the agent's loop, beside which the node may have many thousand cgroups.
      if (++seen > kScanDirectoriesMax) {
        return base::Error{base::Code::kNotFound,
                           "pod " + std::string{uid} + ": not among the first " +
                               std::to_string(kScanDirectoriesMax) + " cgroups of " + root_};
      }
      const std::string path = place.depth == 0 ? name : place.path + "/" + name;
      if (place.in_kubepods && is_pod_directory_name(name, uid)) return at(path, uid);
      // Below a pod are its containers, and a container may make cgroups of any name.
      if (looks_like_a_pod(name) || place.depth + 1 >= kScanDepthMax) continue;
      queue.push_back({path, place.depth + 1, place.in_kubepods || names_kubepods(name)});
    }
  }
  return base::Error{base::Code::kNotFound,
                     "pod " + std::string{uid} + ": no cgroup below " + root_};
}

// CRI-O with `conmon_cgroup = "pod"` runs its monitor of the containers inside the pod's cgroup.
// Frozen with the pod, it could not answer kubelet.
std::string runtime_cgroup_in(const PodCgroup& cgroup) {
  base::Result<os::FileDescriptor> directory =
      os::open_beneath(cgroup.directory.get(), ".", kDirectoryFlags);
  if (!directory) return {};
  for (std::string& name : subdirectories(*std::move(directory))) {
    if (name.starts_with("crio-conmon-")) return std::move(name);
  }
  return {};
}

// By the files that are there and not by the mount: on a hybrid host both hierarchies exist, and
// the one that holds the pod decides. An error other than "not found" is final: a cgroup.freeze
// that may not be opened must not make v1 be tried.
base::Result<std::unique_ptr<Freezer>> open_freezer(const PodCgroup& cgroup) {
  base::Result<std::unique_ptr<Freezer>> v2 = Cgroup2Freezer::open(cgroup.directory.get());
  if (v2 || v2.error().code != base::Code::kNotFound) {
    return v2 ? std::move(v2) : v2.error().with_context("cgroup " + cgroup.path);
  }
  base::Result<std::unique_ptr<Freezer>> v1 = Cgroup1Freezer::open(cgroup.directory.get());
  if (v1) return v1;
  return v1.error().with_context("cgroup " + cgroup.path);
}

}  // namespace agent
