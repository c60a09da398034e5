#include "node-agent/freezer/hierarchy.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "linux/mountinfo.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {
namespace {

bool has_kubepods(const std::string& root) {
  std::error_code ignored;
  return std::filesystem::is_directory(root + "/kubepods", ignored) ||
         std::filesystem::is_directory(root + "/kubepods.slice", ignored);
}

// Returns 0 if the path is there, else errno.
int error_of_stat(const std::string& path) {
  struct statfs about {};
  return ::statfs(path.c_str(), &about) == 0 ? 0 : errno;
}

// A mistyped root may be an existing directory of another file system, where files called
// cgroup.freeze could even be made.
// False for a path that is not there, too.
bool is_cgroup_file_system(const std::string& path) {
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0) return false;
  return about.f_type == CGROUP2_SUPER_MAGIC || about.f_type == CGROUP_SUPER_MAGIC;
}

// Checks a cgroup below the root of its hierarchy, where these files always are: a v1 hierarchy may
// be that of another controller.
base::Status check_freezer(const std::string& cgroup) {
  for (const char* file : {"/cgroup.freeze", "/freezer.state"}) {
    if (::access((cgroup + file).c_str(), F_OK) == 0) return {};
  }
  return base::invalid_argument("cgroup " + cgroup +
                                ": has no freezer (neither cgroup.freeze nor freezer.state): mount "
                                "the cgroup v2 or the v1 freezer hierarchy there");
}

// Two messages, because they are mended in two ways: the mount option of the volume, or the user of
// the container.
base::Status check_writable(const std::string& directory) {
  struct statfs about {};
  if (::statfs(directory.c_str(), &about) == 0 && (about.f_flags & ST_RDONLY) != 0) {
    return base::Error{base::Code::kPermissionDenied,
                       "cgroup root " + directory +
                           ": mounted read-only, so no pod can be frozen: mount it writable"};
  }
  if (::faccessat(AT_FDCWD, directory.c_str(), W_OK, AT_EACCESS) != 0) {
    return base::Error{base::Code::kPermissionDenied,
                       "cgroup root " + directory + ": not writable for uid " +
                           std::to_string(::geteuid()) +
                           ", so no pod can be frozen: run as root or be given the directory"};
  }
  return {};
}

}  // namespace

// On a hybrid machine v2 is mounted without controllers, and kubelet uses v1: so v1 wins if
// kubepods is in it.
base::Result<std::string> detect_cgroup_root() {
  const std::vector<os::CgroupMount> mounts = os::cgroup_mounts();
  const std::string v1 = os::first_mount(mounts, os::CgroupVersion::kV1);
  const std::string v2 = os::first_mount(mounts, os::CgroupVersion::kV2);
  // A hybrid host has both mounted; pods are where kubepods is.
  if (!v1.empty() && has_kubepods(v1)) return v1;
  if (!v2.empty()) return v2;
  if (!v1.empty()) return v1;
  return base::Error{base::Code::kNotFound,
                     "no cgroup v2 hierarchy and no v1 freezer is mounted: name the directory that "
                     "holds kubepods with --cgroup-root"};
}

// 1. the root must exist, 2. a cgroup file system must only be writable, 3. a plain directory must
//    hold a mounted kubepods with a freezer that is writable.
// Without this check the agent would start and report each pod as "waited-for", as if none had
// started yet.
base::Status check_cgroup_root(const std::string& root, const std::string& kubelet_root) {
  if (const int error = error_of_stat(root); error != 0) {
    return base::Error{base::Code::kNotFound, "cgroup root " + root + ": " + std::strerror(error) +
                                                  ": name the directory that holds kubepods with "
                                                  "--cgroup-root"};
  }
  if (is_cgroup_file_system(root)) return check_writable(root);
  std::string looked_at;
  bool mounted = false;
  for (const std::string& path : kubepods_paths(kubelet_root)) {
    const std::string kubepods = root + "/" + path;
    looked_at += (looked_at.empty() ? "" : " nor ") + kubepods;
    if (!is_cgroup_file_system(kubepods)) continue;
    if (base::Status status = check_freezer(kubepods); !status) return status;
    if (base::Status status = check_writable(kubepods); !status) return status;
    // The chart mounts kubepods alone into the container, so the root is a plain directory and only
    // what is below it a cgroup file system.
    mounted = true;
  }
  if (mounted) return {};
  return base::invalid_argument(
      "cgroup root " + root + ": not a cgroup file system, and neither " + looked_at +
      " is one: name the directory in a cgroup v2 or v1 freezer hierarchy that holds kubepods with "
      "--cgroup-root, or mount the node's kubepods there");
}

}  // namespace agent
