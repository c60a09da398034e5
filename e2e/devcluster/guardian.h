// Nothing of a devcluster survives it: everything it starts is below one cgroup, and a guardian
// process, in a session of its own, thaws, kills and removes that cgroup when the devcluster's
// process is gone, however it went (SIGKILL too).
#pragma once

#include <string>

#include "base/result.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "linux/cgroup_tree.h"
#include "linux/file_descriptor.h"

namespace devcluster {

// Returns "kubegang-devcluster-<pid>-<start time of the process>": the name of our cgroup, by which
// a later devcluster knows whether we are still there.
std::string instance_name();

// Returns true if the process that gave itself this instance name has ended; false for other names.
bool is_dead_instance(const std::string& name);

// Destroys the cgroups of devclusters that have ended, guardian and all.
void sweep_dead_instances();

class Guardian {
 public:
  // Runs `program guard …`, whose main program calls guard(). Its messages go to `log_path`.
  static base::Result<Guardian> start(const std::string& program, const os::CgroupRoot& root,
                                      const std::string& log_path);
  Guardian(Guardian&&) = default;
  Guardian& operator=(Guardian&&) = delete;
  // Lets it do its work, and waits for the end of it.
  ~Guardian();

 private:
  Guardian(Child child, os::FileDescriptor lifeline);

  Child child_;
  os::FileDescriptor lifeline_;  // the guardian reads the other end: closed = we are gone
};

// Does the guardian's own work: waits until no process holds the other end of `lifeline_fd`, then
// destroys the cgroup. The exit code of its program.
int guard(int lifeline_fd, const os::CgroupRoot& root);

}  // namespace devcluster
