// The cluster's own programs, as local processes: the operator and the nodes' agents. Each runs in
// a cgroup of its own below the instance's, is stopped by SIGTERM, and writes a log file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "linux/cgroup_tree.h"

namespace devcluster {

struct ComponentSpec {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string log_path;
};

// One thread.
class Components {
 public:
  // Their cgroups are made below `root`/system.
  explicit Components(os::CgroupRoot root) : root_{std::move(root)} {}
  Components(const Components&) = delete;
  Components& operator=(const Components&) = delete;
  ~Components();  // kills what is left

  // REQUIRES: no component of that name runs.
  base::Status start(const std::string& name, ComponentSpec spec);
  // Once more, as it was started the last time. REQUIRES: it was, and has ended.
  base::Status start_again(const std::string& name);
  // kNotFound: there is none, or it has ended.
  base::Status signal(const std::string& name, int signal_number);
  // Sends SIGKILL and waits for the end. No effect if it does not run.
  void kill(const std::string& name);
  // Returns how it ended; nullopt if it has not within `patience`.
  std::optional<ExitStatus> wait(const std::string& name, base::Duration patience);

  bool runs(const std::string& name);
  pid_t pid(const std::string& name) const;  // 0: does not run
  // It and its children.
  std::vector<pid_t> processes(const std::string& name) const;
  std::vector<std::string> names() const;

  // SIGTERM to all, then SIGKILL to those that have not ended within `patience`.
  void stop_all(base::Duration patience);

 private:
  struct Component {
    ComponentSpec spec;
    std::optional<Child> child;
    std::optional<ExitStatus> ended;
  };

  os::CgroupRoot cgroup_of(const std::string& name) const;

  os::CgroupRoot root_;
  std::map<std::string, Component> components_;
};

}  // namespace devcluster
