// The agent's half of the NodeTimetable: what is in force here and what is wrong, and when that is
// worth a write. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "base/time.h"
#include "node-agent/policy/keeper.h"
#include "node-agent/reporting/clock_check.h"

namespace agent {

// At most one write of the status in so long, whatever happens.
inline constexpr base::Duration kStatusWriteInterval = std::chrono::seconds{5};

struct NodeFacts {
  std::vector<PodView> pods{};
  std::shared_ptr<const kube::NodeTimetable> in_force{};
  std::string timetable_complaint{};
  GateVerdict verdict = GateVerdict::kUnchanged;
  std::string undecodable{};  // why the newest object could not even be read
  std::string journal_error{};
  bool failed_open = false;
  bool kill_switch = false;
  ClockReading clock{};
  std::optional<kube::NodeTopology> topology{};
};

// Ready=False says why nobody is sliced here, or why the newest timetable is not obeyed. Ready=True
// with the reason CPUSetNotApplied names a pod that takes its turns unbound.
kube::Condition ready_condition(const NodeFacts& facts);
kube::Condition clock_condition(const NodeFacts& facts);

// The status that follows `before`: transition times stay where nothing changed.
kube::NodeTimetableStatus node_status(const kube::NodeTimetableStatus& before,
                                      const NodeFacts& facts, base::Instant now);

// Whether they differ in more than the clock's error, which changes all the time and is worth no
// write of its own.
bool worth_a_write(const kube::NodeTimetableStatus& before, const kube::NodeTimetableStatus& after);

}  // namespace agent
