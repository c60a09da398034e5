// The agent's main loop as an object: takes the API server's words, lets the policy work out the
// switcher's assignment, and tells people: log, metrics, status. One thread, step by step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "node-agent/policy/node_policy.h"
#include "node-agent/program/node_watch.h"
#include "node-agent/program/policy_loop.h"
#include "node-agent/reporting/agent_report.h"
#include "node-agent/reporting/metrics.h"
#include "node-agent/switching/switcher.h"

namespace agent {

struct AgentParts {
  std::string node{};
  const kube::Clock& clock;
  NodeWatch& watch;
  NodePolicy& policy;
  Switcher& switcher;
  Metrics& metrics;
  std::function<void(AgentReport)> report;  // hands it on
  // How long the pod has stood still; nullopt if the kernel does not count it.
  std::function<std::optional<base::Duration>(const PodView&)> frozen_time;
  // Returns nullopt if it cannot be read.
  std::function<std::optional<kube::NodeTopology>()> read_topology;
  // The CPUs that were online then; "" = not known.
  std::function<std::string()> online_cpus;
  std::function<std::vector<Grant>(const ClockReading&)> check_node;
};

class Agent {
 public:
  // `before`: the journal of the process before, or an empty one.
  Agent(AgentParts parts, const Journal& before);

  // Returns how long to wait if nothing happens before. Quick: no call to the API server in here.
  base::Duration step();
  // The switcher made a switch since the last step: its report is there to be taken, within a
  // second or so. Urgent parts come as news of the switcher.
  bool has_reports() const { return parts_.switcher.counters().switches.load() != switches_seen_; }

  // From now on all pods under control are thawed; stopped() says when that is verified.
  void request_stop() { stopping_ = true; }
  bool stop_requested() const { return stopping_; }
  bool stopped() const;

  // Returns true if the API server has sent pods, timetable and rules.
  bool ready() const { return ready_; }
  std::vector<PodView> pods() const { return parts_.policy.pods(); }

 private:
  void look_at_machine();
  base::Duration tell();
  void count_frozen(const std::vector<PodView>& pods);
  void log_changes(const std::vector<PodView>& pods);
  void log_cpu_notes(const std::map<std::string, std::string>& notes);
  void log_slow_freezes(const std::vector<PodView>& pods);

  AgentParts parts_;
  PolicyLoop loop_;
  ClockReading clock_reading_;
  std::optional<kube::NodeTopology> topology_;
  std::vector<Grant> grants_;
  std::optional<base::Duration> machine_read_at_;
  bool stopping_ = false;
  bool ready_ = false;

  // As last logged or reported.
  struct LoggedSlow {
    std::uint64_t count = 0;
    std::optional<base::Duration> at{};  // monotonic
  };
  std::map<std::string, std::string> logged_pods_;
  std::map<std::string, std::string> logged_cpu_notes_;
  std::map<std::string, LoggedSlow> logged_slow_;  // by pod UID
  std::shared_ptr<const kube::NodeTimetable> logged_timetable_;
  std::string logged_complaint_;
  std::string logged_journal_error_;
  bool logged_failed_open_ = false;
  bool logged_kill_switch_ = false;
  std::uint64_t logged_clock_steps_ = 0;
  std::optional<base::Duration> told_at_;
  std::uint64_t switches_seen_ = 0;
  std::optional<base::Duration> counted_frozen_at_;
};

}  // namespace agent
