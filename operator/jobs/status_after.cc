#include "operator/jobs/status_after.h"

#include <string_view>
#include <utility>
#include <vector>

#include "api/kstatus.h"
#include "api/wellknown.h"
#include "scheduler/model/holds.h"
#include "slurm/hostlist.h"
#include "translation/allocation.h"
#include "translation/reason_names.h"

namespace control {
namespace {

// A hold that no spec says: a new leader can only read it from the status.
bool is_system_hold(sched::Reason reason) {
  return sched::Holds::to_store(reason).has_value();
}

bool is_users_hold(std::string_view reason) {
  return reason == reason_name(sched::Reason::kJobHeldUser) ||
         reason == reason_name(sched::Reason::kJobHeldAdmin);
}

// The two fields belong together: a time without nodes, or the other way round, would be shown as a
// plan.
void forget_plan(kube::JobStatus& status) {
  status.expected_start_time.reset();
  status.planned_nodes.clear();
}

using kube::ConditionStatus;

bool set_condition(kube::JobStatus& status, const DecisionContext& context, std::string_view type,
                   kube::ConditionStatus value, std::string reason, std::string message) {
  return kube::set_condition(status.conditions,
                             {.type = std::string{type},
                              .status = value,
                              .observed_generation = context.generation,
                              .last_transition_time = context.now,
                              .reason = std::move(reason),
                              .message = std::move(message)},
                             context.now);
}

// Sets the condition to False, unless it was never there: a status is not filled with conditions
// that never mattered to its job.
void end_condition(kube::JobStatus& status, const DecisionContext& context, std::string_view type,
                   std::string reason, std::string message) {
  if (kube::find_condition(status.conditions, type) == nullptr) return;
  set_condition(status, context, type, kube::ConditionStatus::kFalse, std::move(reason),
                std::move(message));
}

// Sets the fields of a job that has lost its nodes.
void set_gone(kube::JobStatus& status, const DecisionContext& context, const std::string& reason) {
  end_condition(status, context, kube::kReady, reason, "none of its pods runs");
  end_condition(status, context, kube::kCompleting, reason, "its pods are gone");
}

void end_never_frozen(kube::JobStatus& status, const DecisionContext& context) {
  end_condition(status, context, kube::kNeverFrozen, "NotStarted", "it was about an earlier start");
}

// The last status of a job. Its reason is the ending's if the scheduler named none. Both conditions
// that `kubectl wait` asks for, Finished and one of Complete and Failed, are set together. Ready
// goes: tools such as Flux would wait for it forever.
void set_finished(kube::JobStatus& status, const DecisionContext& context) {
  const std::string name{kube::to_string(*status.state)};
  if (status.ending && status.reason.empty()) status.reason = status.ending->reason;
  if (!context.end_message.empty()) status.message = context.end_message;
  // endTime is when its last pod had ended, not when the end was decided (ending.since).
  status.end_time = context.now;
  status.ending.reset();
  status.held.reset();
  status.retry.reset();
  set_gone(status, context, name);
  std::erase_if(status.conditions, [](const auto& c) { return c.type == kube::kReady; });
  const std::string message =
      context.end_message.empty() ? "the job has ended" : context.end_message;
  const bool complete = status.state == kube::JobState::kCompleted;
  if (complete) {
    // A refused change has become irrelevant.
    end_condition(status, context, kube::kStalled, name, message);
  } else {
    set_condition(status, context, kube::kStalled, ConditionStatus::kTrue, name, message);
  }
  set_condition(status, context, kube::kFinished, ConditionStatus::kTrue, name, message);
  set_condition(status, context, complete ? kube::kJobComplete : kube::kJobFailed,
                ConditionStatus::kTrue, name, message);
}

// A new leader can work none of it out.
std::optional<kube::JobRetry> retry_of(const sched::StateChange& change,
                                       const DecisionContext& context) {
  if (!change.retry) return std::nullopt;
  kube::JobRetry retry;
  if (change.retry->at > context.now) retry.at = change.retry->at;
  if (change.retry->nodes_until > context.now && !change.retry->nodes.empty()) {
    std::vector<std::string> names;
    for (const sched::NodeIndex node : change.retry->nodes) {
      names.push_back(context.node_name(node));
    }
    retry.avoid_nodes = slurm::compress_hostlist(names);
    retry.avoid_until = change.retry->nodes_until;
  }
  if (!retry.at && !retry.avoid_until) return std::nullopt;
  return retry;
}

void set_limit(kube::JobStatus& status, std::optional<base::Duration> limit,
               const DecisionContext& context) {
  status.time_limit = limit;
  if (!status.observed) status.observed.emplace();
  status.observed->time_limit = context.asked_limit;
}

// A job that waits again keeps its number, its priority and its restarts; nothing stays of the
// start that is over.
void set_waiting_again(kube::JobStatus& status, const sched::StateChange& change, bool requeued,
                       const DecisionContext& context) {
  status.ending.reset();
  status.allocation.reset();
  status.member_indexes.clear();
  status.succeeded_indexes = context.succeeded;
  status.partition = context.partition;
  status.start_time.reset();
  // Slurm counts the time limit again for each start, so the times of the start that is over go.
  status.run_time.reset();
  status.suspend_time.reset();
  status.preempt_eligible_time.reset();
  status.time_limit.reset();
  // A start that was undone has cost the job none of its age.
  if (requeued) status.eligible_time = change.eligible_at;
  status.retry = retry_of(change, context);
  // A job that is requeued counts as submitted again (T7), one whose start is undone does not.
  if (requeued) status.submit_time = context.now;
  end_never_frozen(status, context);
  set_gone(status, context, "NotStarted");
  // Together with the requeue in one write: a crash in between would let the next leader start a
  // job that is held.
  status.held.reset();
  if (is_system_hold(change.reason)) status.held = kube::JobHeld{status.reason};
}

}  // namespace

StatusAfter status_after(const sched::Start& start, kube::JobStatus status,
                         const DecisionContext& context) {
  status.state = kube::JobState::kRunning;
  status.reason.clear();
  status.message.clear();
  status.partition = context.partition;
  status.allocation = encode_allocation(start.allocation, context.node_name);
  set_limit(status, start.time_limit, context);
  // The number of the start is in the names of its pods, so pods of an earlier start can never be
  // mistaken for its own. It rises with the commit point and never goes back.
  status.starts = status.starts.value_or(0) + 1;
  status.start_time.reset();
  status.end_time.reset();
  forget_plan(status);
  status.ending.reset();
  // The claimed nodes are allocated now. Both change in one write, so no leader ever sees the nodes
  // free.
  status.claim.reset();
  // The outcome of the previous start must not be read as one of this.
  status.exit_code.reset();
  status.usage.reset();
  status.succeeded_indexes = context.succeeded;
  status.member_indexes.clear();
  // The start's own: its lastTransitionTime is when it was decided, also after an earlier start.
  // set_condition() keeps the transition time of a condition that was False before.
  std::erase_if(status.conditions, [](const auto& c) { return c.type == kube::kReady; });
  end_never_frozen(status, context);
  set_condition(status, context, kube::kReady, ConditionStatus::kFalse, "Starting",
                "its pods are being started");
  set_condition(status, context, kube::kCompleting, ConditionStatus::kFalse, "NotEnding",
                "its end is not decided");
  return {std::move(status), WriteUrgency::kCommit};
}

StatusAfter status_after(const sched::Suspend& suspend, kube::JobStatus status,
                         const DecisionContext&) {
  // A turn of the rotation does not change the base state; the timetables say it. That a job gets
  // turns once more does.
  const bool had_none = status.state == kube::JobState::kSuspended &&
                        status.reason == reason_name(sched::Reason::kPreempted);
  const bool by_slice = suspend.cause == sched::Reason::kTimeslice && !had_none;
  status.state = kube::JobState::kSuspended;
  status.reason = std::string{reason_name(suspend.cause)};
  status.message.clear();
  return {std::move(status), by_slice ? WriteUrgency::kInforms : WriteUrgency::kUrgent};
}

StatusAfter status_after(const sched::Resume&, kube::JobStatus status, const DecisionContext&) {
  // Suspend has left its cause in the reason.
  const bool by_slice = status.reason == reason_name(sched::Reason::kTimeslice);
  status.state = kube::JobState::kRunning;
  status.reason.clear();
  status.message.clear();
  return {std::move(status), by_slice ? WriteUrgency::kInforms : WriteUrgency::kUrgent};
}

StatusAfter status_after(const sched::End& end, kube::JobStatus status,
                         const DecisionContext& context) {
  kube::JobEnding ending;
  ending.verdict = verdict_of(end.verdict);
  ending.since = context.now;
  // Stored as an instant, not as a duration: a new leader must not grant the grace time again.
  ending.grace_end = end.kill_at;
  ending.reason = std::string{end.preemptor ? reason_name(sched::Reason::kPreempted)
                                            : kube::to_string(ending.verdict)};
  // The UID, so that a new leader knows for whose claim this victim ends, even if a job of that
  // name was created again.
  ending.by = context.preemptor;
  status.ending = std::move(ending);
  set_condition(status, context, kube::kCompleting, ConditionStatus::kTrue, "Ending",
                "its pods are being ended");
  return {std::move(status), WriteUrgency::kCommit};
}

// Otherwise the next leader would end the job by the limit before.
StatusAfter status_after(const sched::LimitChanged& change, kube::JobStatus status,
                         const DecisionContext& context) {
  set_limit(status, change.time_limit, context);
  return {std::move(status), WriteUrgency::kUrgent};
}

// A claim is a commit point, because the endings of its victims wait for it (CommitGate, rule 4).
StatusAfter status_after(const sched::Claim& claim, kube::JobStatus status,
                         const DecisionContext& context) {
  status.claim.reset();
  if (claim.claim) {
    const kube::Allocation nodes = encode_allocation(*claim.claim, context.node_name);
    status.claim = kube::JobClaim{.hostlist = nodes.hostlist,
                                  // A claim has one list of cores for all its nodes. If they
                                  // differ, it is stored without cores, and a new leader claims the
                                  // nodes whole (restore_claim): more than was meant, never less.
                                  .cores = nodes.shares.size() == 1 ? nodes.shares[0].cores : "",
                                  .since = context.now,
                                  .until = claim.until};
  }
  return {std::move(status), WriteUrgency::kCommit};
}

StatusAfter status_after(const sched::StateChange& change, kube::JobStatus status,
                         const DecisionContext& context) {
  // Compared before the count is taken over. A start that is undone does not count as a restart.
  const bool requeued = change.restarts != status.restarts.value_or(0);
  status.state = state_of(change.state);
  status.reason = std::string{reason_name(change.reason)};
  status.message.clear();
  status.exit_code = change.exit_code;
  status.usage = context.usage;
  status.restarts = change.restarts;
  if (change.node_failures > 0 || status.node_failures) {
    status.node_failures = change.node_failures;
  }
  status.claim.reset();
  forget_plan(status);
  if (is_terminal(change.state)) {
    set_finished(status, context);
  } else {
    set_waiting_again(status, change, requeued, context);
  }
  return {std::move(status), WriteUrgency::kCommit};
}

StatusAfter status_after(const sched::Waits& waits, kube::JobStatus status,
                         const DecisionContext& context) {
  // A user who holds or releases a job looks at it next.
  const bool turns = is_users_hold(status.reason) != is_users_hold(reason_name(waits.reason));
  status.reason = std::string{reason_name(waits.reason)};
  // Until when it waits is its retry; why is worth more.
  if (context.last_end.empty() || context.last_end == waits.message) {
    status.message = waits.message;
  } else if (waits.reason == sched::Reason::kBeginTime) {
    status.message = context.last_end;
  } else {
    status.message = waits.message + "; its last start ended: " + context.last_end;
  }
  const bool is_final = status.state && kube::is_final(*status.state);
  // A reason of a job that has nodes (why it does not run now) is never a hold.
  if (status.allocation && !is_final) return {std::move(status), WriteUrgency::kInforms};
  // A hold by the system is stored, because a new leader could not work it out; all other reasons
  // it finds again by itself. It is the reason for as long as it holds the job, whatever else does.
  const bool was_held = status.held.has_value();
  status.held.reset();
  if (is_system_hold(waits.reason)) status.held = kube::JobHeld{status.reason};
  const bool changes = was_held || status.held || turns;
  return {std::move(status), changes ? WriteUrgency::kUrgent : WriteUrgency::kInforms};
}

// A plan that is close to what is stored shows as that, so that nothing is written.
StatusAfter status_after(const sched::Planned& planned, kube::JobStatus status,
                         const DecisionContext& context) {
  forget_plan(status);
  if (planned.start) {
    std::vector<std::string> names;
    // Names, since node indexes are of this process only.
    for (const sched::NodeIndex node : planned.nodes) names.push_back(context.node_name(node));
    status.expected_start_time = planned.start;
    status.planned_nodes = slurm::compress_hostlist(names);
    const auto& shown = context.stored->expected_start_time;
    // Estimates move by seconds with each plan. A write for each would say little and cost much.
    if (shown && context.stored->planned_nodes == status.planned_nodes &&
        std::chrono::abs(*shown - *planned.start) < kPlanTolerance) {
      status.expected_start_time = shown;
    }
  }
  return {std::move(status), WriteUrgency::kInforms};
}

StatusAfter status_after(const sched::CommandRefused& refused, kube::JobStatus status,
                         const DecisionContext&) {
  status.message = refused.message;
  return {std::move(status), WriteUrgency::kInforms};
}

kube::TaskOutcome task_outcome_of(sched::JobState state) {
  if (state == sched::JobState::kCompleted) return kube::TaskOutcome::kSucceeded;
  return state == sched::JobState::kCancelled ? kube::TaskOutcome::kCancelled
                                              : kube::TaskOutcome::kFailed;
}

std::optional<base::Instant> starting_since(const kube::JobStatus& status) {
  const kube::Condition* ready = kube::find_condition(status.conditions, kube::kReady);
  return ready == nullptr ? std::nullopt : ready->last_transition_time;
}

}  // namespace control
