#include "linux/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "linux/file_descriptor.h"
#include "linux/system_error.h"

// A cgroup is a directory; the kernel makes its files. So everything here is mkdir(2), rmdir(2),
// and reading and writing small files. Three facts of the kernel decide how: a cgroup can be
// removed only when it has no children and no process left (zombies do not count); freezing counts
// for a whole subtree, but each cgroup keeps its own wish; and processes may fork while they are
// listed. Hence trees are walked top down to thaw and bottom up to remove, and destroying repeats
// until nothing is left. SOURCE: cgroup-v2.rst, "Organizing Processes and Threads".
namespace os {
namespace {

using base::Code;
using base::Error;

constexpr int kDestroyPauseMillisMax = 20;  // between two looks at a dying cgroup

// Returns "" if the file is not there: a cgroup may go at any moment.
std::string read_file(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Returns true if the kernel took the whole text.
bool write_file(const std::string& path, std::string_view text) {
  const FileDescriptor fd{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!fd.is_open()) return false;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Returns the paths of the cgroups directly below; none if the cgroup is gone.
std::vector<std::string> subdirectories(const std::string& path) {
  std::vector<std::string> found;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return found;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    // cgroupfs fills in d_type, so no entry needs a stat().
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      found.push_back(path + "/" + std::string{name});
    }
  }
  ::closedir(directory);
  return found;
}

// Returns the directory and all below it, parents before children: breadth first.
std::vector<std::string> tree(const std::string& path) {
  std::vector<std::string> found;
  if (!cgroup_exists(path)) return found;
  found.push_back(path);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::string& child : subdirectories(found[i])) found.push_back(std::move(child));
  }
  return found;
}

std::string freeze_file(CgroupVersion version, const std::string& path) {
  return path + (version == CgroupVersion::kV1 ? "/freezer.state" : "/cgroup.freeze");
}

// Returns the path of our own cgroup in the hierarchy, from /proc/self/cgroup: "/" when unknown.
// A line is ID:CONTROLLERS:PATH; the line of v2 has no controllers.
std::string own_cgroup(CgroupVersion version) {
  std::istringstream lines{read_file("/proc/self/cgroup")};
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches = version == CgroupVersion::kV2
                             ? controllers.empty()
                             : ("," + controllers + ",").find(",freezer,") != std::string::npos;
    if (matches) return line.substr(second + 1);
  }
  return "/";
}

// Makes parent/prefix and checks that it can be frozen and filled; opening for writing asks the
// kernel without changing anything. Removes the directory again if not. The error names the place.
base::Status try_root(CgroupVersion version, const std::string& parent, const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) {
    return error_from_errno(parent + ": mkdir", errno);
  }
  for (const std::string& file : {freeze_file(version, path), path + "/cgroup.procs"}) {
    const FileDescriptor fd{::open(file.c_str(), O_WRONLY | O_CLOEXEC)};
    if (fd.is_open()) continue;
    const int error_number = errno;
    ::rmdir(path.c_str());
    return error_from_errno(file, error_number);
  }
  return {};
}

}  // namespace

// 1. The hierarchies in the order of cgroup_mounts(): v2 first.
// 2. In each the top, which root may use, then our own cgroup, which may be delegated to an
//    ordinary user.
// 3. The first place in which a cgroup with a writable freezer can be made.
base::Result<CgroupRoot> make_cgroup_root(std::optional<CgroupVersion> wanted,
                                          std::string_view prefix) {
  std::string tried;
  Code code = Code::kNotFound;
  for (const CgroupMount& mount : cgroup_mounts()) {
    if (wanted && mount.version != *wanted) continue;
    std::vector<std::string> parents{mount.path};
    if (const std::string own = own_cgroup(mount.version); own != "/") {
      parents.push_back(mount.path + own);  // delegated to an ordinary user
    }
    for (const std::string& parent : parents) {
      const std::string path = parent + "/" + std::string{prefix};
      const base::Status status = try_root(mount.version, parent, path);
      if (status.ok()) return CgroupRoot{mount.version, path};
      code = status.error().code;
      // All places and their errors go into one message: the one that an administrator wanted may
      // be the first or the last.
      tried += "; " + status.error().message;
    }
  }
  const std::string which = wanted ? "cgroup " + to_string(*wanted) : "cgroup";
  if (tried.empty()) {
    return Error{Code::kNotFound, "no " + which +
                                      " hierarchy with a freezer is mounted (looked for cgroup2 or "
                                      "v1 freezer in /proc/self/mountinfo); mount "
                                      "one, for example: mount -t cgroup2 none /sys/fs/cgroup"};
  }
  return Error{code, "no writable " + which + " hierarchy with a freezer" + tried +
                         (::geteuid() == 0 ? "; mount one read-write"
                                           : "; run as root, or where a cgroup is delegated")};
}

// mkdir -p: EEXIST is success at every level, also when another process made the level meanwhile.
base::Status make_cgroup(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      // This process may be unable to make a mount point's parents, but they exist.
      const int error_number = errno;
      if (!cgroup_exists(part)) {
        return error_from_errno("make cgroup " + part, error_number);
      }
    }
    if (slash == std::string::npos) return {};
  }
}

bool cgroup_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Asks both versions' files; only one of the two exists.
bool is_frozen(const std::string& path) {
  return read_file(path + "/cgroup.events").find("frozen 1") != std::string::npos ||
         read_file(path + "/freezer.state").starts_with("FROZEN");
}

// A PID of 0 is a process outside of our PID namespace, which we could not signal anyway.
std::vector<pid_t> processes_below(const std::string& path) {
  std::vector<pid_t> found;
  for (const std::string& directory : tree(path)) {
    std::istringstream text{read_file(directory + "/cgroup.procs")};
    for (pid_t pid = 0; text >> pid;) {
      if (pid > 0) found.push_back(pid);
    }
  }
  return found;
}

// Every cgroup by itself: a child that was frozen on its own stays frozen when its parent is
// thawed.
void thaw_below(CgroupVersion version, const std::string& path) {
  for (const std::string& directory : tree(path)) {
    write_file(freeze_file(version, directory), version == CgroupVersion::kV1 ? "THAWED" : "0");
  }
}

// Thaws first, because a frozen process of v1 does not see SIGKILL until it is thawed. cgroup.kill
// (since Linux 5.14) also catches processes that fork meanwhile; without it the caller repeats
// this. The second thaw is for a freeze that came between the first one and the signals.
void kill_below(CgroupVersion version, const std::string& path) {
  thaw_below(version, path);
  if (version == CgroupVersion::kV2 && write_file(path + "/cgroup.kill", "1")) return;
  for (const pid_t pid : processes_below(path)) ::kill(pid, SIGKILL);
  thaw_below(version, path);
}

// rmdir() of a cgroup succeeds only when its last process has exited and its children are gone, so
// this kills and removes again and again until the cgroup is away or the patience is over.
base::Status destroy_cgroup(CgroupVersion version, const std::string& path,
                            base::Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (int pause_millis = 1;; pause_millis = std::min(pause_millis * 2, kDestroyPauseMillisMax)) {
    if (!processes_below(path).empty()) kill_below(version, path);
    const std::vector<std::string> directories = tree(path);
    // Children before parents.
    for (auto it = directories.rbegin(); it != directories.rend(); ++it) ::rmdir(it->c_str());
    if (!cgroup_exists(path)) return {};
    if (std::chrono::steady_clock::now() >= deadline) {
      const auto left = processes_below(path);
      return Error{Code::kTimeout,
                   "remove cgroup " + path + ": " + std::to_string(left.size()) +
                       " processes are left" +
                       (left.empty() ? "" : ", the first is " + std::to_string(left.front()))};
    }
    // 1, 2, 4 … 20 ms: processes mostly die within the first.
    ::poll(nullptr, 0, pause_millis);
  }
}

}  // namespace os
