// The status of a job after a decision of the scheduler, and how urgent it is to store that. Pure.
// The rest that follows from a decision (pods, nodes, the log) is in decisions.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "api/array_status.h"
#include "api/job.h"
#include "base/time.h"
#include "operator/publish/mirror.h"
#include "scheduler/decision.h"

namespace control {

// The facts that a decision refers to and does not contain.
struct DecisionContext {
  base::Instant now{};
  std::int64_t generation = 0;  // of the job's newest spec
  std::function<const std::string&(sched::NodeIndex)> node_name{};
  std::string succeeded{};  // Start, StateChange: pods that have succeeded and are not run again
  std::string partition{};  // Start: in which it runs; StateChange: in which it may run again
  std::optional<kube::JobReference> preemptor{};  // End: if it is known
  std::string end_message{};                      // StateChange: what was seen of an end by itself
  std::optional<kube::JobUsage> usage{};          // StateChange: what its launcher said of it
  std::string last_end{};                         // Waits: why the last start was undone, or ended
  // Start, LimitChanged: the limit that the spec asks for.
  std::optional<base::Duration> asked_limit{};
  const kube::JobStatus* stored = nullptr;  // Planned: what is stored
};

struct StatusAfter {
  kube::JobStatus status;
  WriteUrgency urgency = WriteUrgency::kInforms;
};

// Each takes the status that was wanted before the decision, which may be not stored yet, and
// returns the one to want now. A field that a decision does not concern stays as it is.
StatusAfter status_after(const sched::Start& start, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::Suspend& suspend, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::Resume& resume, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::End& end, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::LimitChanged& change, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::Claim& claim, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::StateChange& change, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::Waits& waits, kube::JobStatus status,
                         const DecisionContext& context);
// An expected start that is off by less than this from what is stored is not worth a write.
inline constexpr base::Duration kPlanTolerance = std::chrono::seconds{5};
StatusAfter status_after(const sched::Planned& planned, kube::JobStatus status,
                         const DecisionContext& context);
StatusAfter status_after(const sched::CommandRefused& refused, kube::JobStatus status,
                         const DecisionContext& context);

// Returns how a task of an array has ended. REQUIRES: `state` is terminal.
kube::TaskOutcome task_outcome_of(sched::JobState state);

// Returns when a job that has nodes, and is not ready, got them: a start sets Ready=False.
std::optional<base::Instant> starting_since(const kube::JobStatus& status);

}  // namespace control
