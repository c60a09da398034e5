// The agent's reports about itself: the status of the NodeTimetable, the metrics, and the file
// that `kubegang-agent inspect` shows are made from it. A value.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "node-agent/policy/node_policy.h"
#include "node-agent/reporting/clock_check.h"
#include "node-agent/reporting/node_check.h"

namespace agent {

struct AgentReport {
  std::vector<PodView> pods{};
  std::map<std::string, std::string> cpu_notes{};         // NodePolicy::cpu_notes
  std::shared_ptr<const kube::NodeTimetable> in_force{};  // null = none
  GateVerdict verdict = GateVerdict::kUnchanged;          // of the newest timetable
  std::string timetable_complaint{};                      // why that one is not in force
  std::map<GateVerdict, std::uint64_t> ignored{};         // timetables so far, by reason
  std::string undecodable{};  // why the newest object could not even be read
  std::string journal_error{};
  bool failed_open = false;
  bool kill_switch = false;
  bool stopped = false;  // the agent's last word: everything is thawed, and it ends
  ClockReading clock{};
  std::optional<kube::NodeTopology> topology{};
  std::vector<Grant> grants{};  // empty = not looked at yet
};

}  // namespace agent
