// A node in one process: a keeper, a switcher without its thread, a fake kernel, a journal in a
// temporary directory, and builders for pods and timetables. Time passes only in run_for().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/policy/node_policy.h"
#include "node-agent/switching/switch_core.h"
#include "node-agent/testing/fake_freezer.h"
#include "node-agent/testing/fake_switch_clock.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent::testing {

inline constexpr base::Instant kFakeStart{std::chrono::seconds{1'767'225'600}};  // 2026-01-01

class FakeNode {
 public:
  FakeNode();
  ~FakeNode();

  // The agent's process ends without a word, and a new one starts: journal and kernel stay.
  void restart_agent(bool pods_known = true);

  // Adds a pod of job `job` that has been running for an hour, with its cgroup.
  kube::Pod& add_pod(const std::string& name, const std::string& job);
  kube::Pod& pod(const std::string& name) { return pods_.at(name); }
  void remove_pod(const std::string& name) { pods_.erase(name); }

  // Makes the next revision: lists the pods in this order, each by "name" of its job of that name.
  kube::NodeTimetable timetable(const std::vector<std::string>& pods,
                                std::vector<timetable::PodSet> cycle);
  void publish(const kube::NodeTimetable& timetable);

  // As one that is in the middle of a switch, or that has no CPU: what is submitted from now on is
  // obeyed when it is let go, the newest of it. Until the agent is restarted.
  void hold_switcher(bool on);

  void step();  // of keeper and switcher, now
  void run_for(base::Duration duration);

  bool runs(const std::string& name) { return kernel_.is_running(cgroup_name(name)); }
  FakeKernel::Cgroup& cgroup(const std::string& name) { return kernel_.cgroup(cgroup_name(name)); }
  std::vector<std::string> log() { return kernel_.take_log(); }
  Journal journal() const;
  PodView view(const std::string& name) const;
  const std::map<std::string, std::string>& cpu_notes() const { return policy_->cpu_notes(); }

  static std::string cgroup_name(const std::string& pod) { return "uid-" + pod; }

  FakeSwitchClock& clock() { return clock_; }
  NodePolicy& policy() { return *policy_; }
  SwitchCounters& counters() { return *counters_; }
  Inputs& inputs() { return inputs_; }
  const std::string& directory() const { return directory_.path(); }

 private:
  class Opener;
  class Sink;

  TemporaryDirectory directory_;
  FakeSwitchClock clock_{kFakeStart};
  FakeKernel kernel_{clock_};
  std::map<std::string, kube::Pod> pods_;
  Inputs inputs_;
  std::int64_t revision_ = 0;
  std::unique_ptr<ReportRing> reports_;
  std::unique_ptr<SwitchCounters> counters_;
  std::unique_ptr<SwitchCore> core_;
  std::unique_ptr<Opener> opener_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<NodePolicy> policy_;
};

}  // namespace agent::testing
