#include "e2e/devcluster/components.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace devcluster {
namespace {

// SIGKILL works at once, except for a process within a system call that cannot be interrupted.
constexpr std::chrono::seconds kKillPatience{5};

}  // namespace

// Without patience: programs that must end in order are stopped by stop_all() before.
Components::~Components() {
  for (const auto& [name, component] : components_) kill(name);
}

// Beside the nodes' cgroups, not below them: an agent must not count as a pod of its node.
os::CgroupRoot Components::cgroup_of(const std::string& name) const {
  return {root_.version, root_.path + "/system/" + name};
}

// The spec is kept for start_again().
base::Status Components::start(const std::string& name, ComponentSpec spec) {
  CHECK(!runs(name), name);
  components_[name] = {.spec = std::move(spec)};
  return start_again(name);
}

// The cgroup of the component is made before the process, which begins in it: so everything that it
// starts can be found and killed later, whatever became of the process itself.
base::Status Components::start_again(const std::string& name) {
  const auto found = components_.find(name);
  CHECK(found != components_.end() && !runs(name), name);
  Component& component = found->second;
  const os::CgroupRoot cgroup = cgroup_of(name);
  if (const base::Status made = os::make_cgroup(cgroup.path); !made.ok()) return made;
  base::Result<Child> child = spawn({.argv = component.spec.argv,
                                     .environment = component.spec.environment,
                                     .output_path = component.spec.log_path,
                                     .cgroup = cgroup});
  if (!child.ok()) return child.error().with_context("start " + name);
  component.child = std::move(child).value();
  component.ended.reset();
  return {};
}

// Only to the process that was started: an agent's supervisor passes SIGTERM on to its worker.
base::Status Components::signal(const std::string& name, int signal_number) {
  if (!runs(name)) return base::Error{base::Code::kNotFound, name + " does not run"};
  ::kill(components_[name].child->pid, signal_number);
  return {};
}

void Components::kill(const std::string& name) {
  const auto found = components_.find(name);
  if (found == components_.end()) return;
  const os::CgroupRoot cgroup = cgroup_of(name);
  // By the cgroup: the agent's worker is a child of the process that was started.
  os::kill_below(cgroup.version, cgroup.path);
  // Reaps the process; its cgroup may go only then.
  (void)wait(name, kKillPatience);
  (void)os::destroy_cgroup(cgroup.version, cgroup.path, kKillPatience);
}

// Waits on the pidfd, which becomes readable when the process has ended, then reaps. The status is
// kept: a second call answers the same.
std::optional<ExitStatus> Components::wait(const std::string& name, base::Duration patience) {
  const auto found = components_.find(name);
  if (found == components_.end()) return std::nullopt;
  Component& component = found->second;
  if (component.child) {
    pollfd fd{component.child->pidfd.get(), POLLIN, 0};
    ::poll(&fd, 1,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(patience).count()));
    component.ended = reap(*component.child);
    if (component.ended) component.child.reset();
  }
  return component.ended;
}

// A wait of no time: only reaping tells a process that runs from a zombie.
bool Components::runs(const std::string& name) {
  const auto found = components_.find(name);
  if (found == components_.end() || !found->second.child) return false;
  return !wait(name, base::Duration{0}).has_value();
}

// Returns the process that was started: an agent's supervisor, not its worker.
pid_t Components::pid(const std::string& name) const {
  const auto found = components_.find(name);
  return found == components_.end() || !found->second.child ? 0 : found->second.child->pid;
}

// By the cgroup, so children and grandchildren are among them.
std::vector<pid_t> Components::processes(const std::string& name) const {
  return os::processes_below(cgroup_of(name).path);
}

std::vector<std::string> Components::names() const {
  std::vector<std::string> out;
  for (const auto& [name, component] : components_) out.push_back(name);
  return out;
}

// All get SIGTERM first and share one deadline, so a stop takes as long as the slowest.
void Components::stop_all(base::Duration patience) {
  for (const std::string& name : names()) (void)signal(name, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const std::string& name : names()) {
    const auto left =
        std::chrono::ceil<base::Duration>(deadline - std::chrono::steady_clock::now());
    (void)wait(name, std::max(base::Duration{0}, left));
    kill(name);
  }
}

}  // namespace devcluster
