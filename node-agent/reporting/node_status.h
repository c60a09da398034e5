// The agent's half of the NodeTimetable: what is in force here and what is wrong, and when that is
// worth a write. Pure.
#pragma once

#include "api/node_timetable.h"
#include "base/time.h"
#include "node-agent/reporting/agent_report.h"

namespace agent {

// The least time between two writes of the status, whatever happens.
inline constexpr base::Duration kStatusWriteInterval = std::chrono::seconds{5};

// Ready=False says why no pod takes turns here, or why the newest timetable is not obeyed.
// Ready=True with the reason CPUSetNotApplied names a pod that runs unbound.
kube::Condition ready_condition(const AgentReport& report);
kube::Condition clock_condition(const AgentReport& report);
// Granted=False says what the node lacks for gangs to be switched. Granted=True with the reason
// Limited says what would make it better.
kube::Condition granted_condition(const AgentReport& report);

// Returns the status that follows `before`: transition times stay where nothing changed.
kube::NodeTimetableStatus node_status(const kube::NodeTimetableStatus& before,
                                      const AgentReport& report, base::Instant now);

// Returns true if they differ in more than the clock's error, which changes all the time and is
// worth no write of its own.
bool worth_a_write(const kube::NodeTimetableStatus& before, const kube::NodeTimetableStatus& after);

}  // namespace agent
