// Starting a local process inside a cgroup, from a program with threads. The child is in the cgroup
// before its program begins; there is no moment in which it runs outside.
//
// On v2 the kernel puts it there (clone3, CLONE_INTO_CGROUP: 0.6 ms; moving it by cgroup.procs
// costs 8-16 ms of a global lock, measured); on v1 the child moves itself before exec.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "linux/cgroup_tree.h"
#include "linux/file_descriptor.h"

namespace devcluster {

// A file or folder that the process sees at another place.
struct Mount {
  std::string from;
  std::string to;  // exists
};

struct SpawnSpec {
  std::vector<std::string> argv;         // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // NAME=value; nothing is inherited
  std::string working_dir = "/";
  std::string
      output_path;  // stdout and stderr are appended to it; must be in a directory that exists
  // Standard input, output and error instead, each above 2; they stay the caller's.
  std::optional<std::array<int, 3>> streams;
  std::optional<os::CgroupRoot> cgroup;  // an existing cgroup; absent: the caller's own
  std::vector<int> inherited_fds;        // kept open under the same number
  // With one of these the process has mounts and a host name of its own, which only root may make.
  std::vector<Mount> mounts;
  std::string hostname;
};

struct Child {
  pid_t pid = 0;
  os::FileDescriptor pidfd;  // readable when the process has ended
};

// The child is a session of its own (no terminal, no Ctrl-C), with default signal handlers, nothing
// blocked and standard input from /dev/null. Returns when its program has begun, or the reason why
// it did not, spelled as a container runtime would: kNotFound `exec: "x": executable file not found
// in $PATH`, kPermissionDenied, kInvalidArgument. Thread-safe. The caller reaps by wait_child().
base::Result<Child> spawn(const SpawnSpec& spec);

// How a process ended.
struct ExitStatus {
  int exit_code = 0;  // 128 + signal when a signal ended it, as shells and runtimes count
  int signal = 0;     // 0: it exited
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// Reaps the child if it has ended, else nothing. Never blocks.
std::optional<ExitStatus> reap(const Child& child);

// Returns where `name` is: as given when it has a slash, else the first executable file of that
// name in the directories of `path_variable`.
base::Result<std::string> find_executable(const std::string& name,
                                          const std::string& path_variable);

}  // namespace devcluster
