// The consequences of the scheduler's decisions: the wanted status (status_after.h), the pods and
// nodes of a start, and events.
#include "operator/jobs/decisions.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "api/wellknown.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/queue_priorities.h"
#include "operator/jobs/run_times.h"
#include "translation/job_translation.h"
#include "translation/pod_slots.h"
#include "translation/reason_names.h"

namespace control {
namespace {

constexpr std::ptrdiff_t kHeldTasksMax = 100;

// The launcher in the first pod speaks for all of them.
std::optional<kube::JobUsage> usage_of(const JobRecord& job) {
  if (!job.object->spec.batch || job.start->slot_pods.empty()) return std::nullopt;
  const auto& usage = job.start->slot_pods.front().usage;
  return usage == nullptr ? std::nullopt : std::optional{*usage};
}

}  // namespace

// Makes a record of a task of an array with the first decision about the task by itself.
JobRecord* Decisions::find(sched::JobId id) {
  JobRecord* job = parts_.jobs.find(id);
  const auto task = id.task();
  if (job != nullptr || !task) return job;
  JobRecord* array = parts_.jobs.find(id.array());
  if (array == nullptr || !array->array || array->is_final()) return nullptr;
  if (array->array->outcomes().of(*task) != kube::TaskOutcome::kNone) return nullptr;
  return &parts_.jobs.make_task(*array, *task, nullptr);
}

// A decision about a job that is no longer known changes nothing: the job was deleted.
void Decisions::apply(const sched::Decision& decision) {
  std::visit(
      [this](const auto& one) {
        JobRecord* job = find(one.job);
        if (job == nullptr) return;
        on(one, *job);
        // Touched even if the status stays as it is: pods and timetables may follow from the
        // decision.
        parts_.jobs.touch(job->uid);
      },
      decision);
}

DecisionContext Decisions::decision_context(const JobRecord& job) const {
  return {.now = parts_.now,
          .generation = job.object->metadata.generation,
          .node_name = [this](sched::NodeIndex node) -> const std::string& {
            return scheduler_.names().node_name(node);
          }};
}

// Returns the account that the job asks for, "" if it asks for none or for one that does not exist.
std::string Decisions::account_of(const JobRecord& job) const {
  const auto& accounts = parts_.policy.configuration().accounts;
  const std::string& name = job.request().account;
  return std::ranges::any_of(accounts, [&](const auto& each) { return each.name == name; }) ? name
                                                                                            : "";
}

// 1. The state of an earlier start goes: its nodes, slots, failures and refusals.
// 2. The status gets the allocation; that is the commit point.
// 3. The pods of the start follow from the allocation as it will be stored, so that a new leader,
//    which reads it back, computes the same names.
void Decisions::on(const sched::Start& start, JobRecord& job) {
  // 1. what belonged to an earlier start
  ++counters_.starts;
  count_estimate(job);
  leave_nodes(job);
  job.clear_start();
  // The warning came from a dry run while the job waited; now its pods themselves will tell.
  wishes_.forget_warning(job);
  job.last_end.edit().clear();
  show_times_unmarked(job, scheduler_, parts_.now);
  // 2. the allocation
  DecisionContext context = decision_context(job);
  context.partition = scheduler_.names().partition_name(start.partition);
  context.succeeded = done_indexes(job.object->spec, job.wanted());
  context.asked_limit = job.request().time_limit;
  // The slots follow, and not before: their names contain the number of the start, which the status
  // has just counted.
  parts_.jobs.apply(job, start, context);
  totals_.started(job, parts_.now);
  gangs_.take_slots(job);
  const kube::JobStatus& wanted = job.wanted();
  parts_.report.log("start", job_fields(job, {{"partition", wanted.partition},
                                              {"nodes", wanted.allocation->hostlist},
                                              {"starts", *wanted.starts}}));
}

void Decisions::on(const sched::Suspend& suspend, JobRecord& job) {
  show_times_unmarked(job, scheduler_, parts_.now);
  const WriteUrgency how = parts_.jobs.apply(job, suspend, decision_context(job));
  // A turn of the rotation comes with each slice; events for it would drown all others.
  if (how == WriteUrgency::kInforms) return;
  totals_.suspended(suspend.cause);
  const std::string& reason = job.wanted().reason;
  parts_.report.log("suspend", job_fields(job, {{"reason", reason}}));
  tell_event(parts_.report, job, false, "Suspended", "reason " + reason);
}

void Decisions::on(const sched::Resume& resume, JobRecord& job) {
  show_times_unmarked(job, scheduler_, parts_.now);
  const WriteUrgency how = parts_.jobs.apply(job, resume, decision_context(job));
  if (how == WriteUrgency::kInforms) return;
  parts_.report.log("resume", job_fields(job));
  tell_event(parts_.report, job, false, "Resumed", "it runs again");
}

// The ending is stored after the claim of the preemptor (CommitGate, rule 4).
void Decisions::on(const sched::End& end, JobRecord& job) {
  DecisionContext context = decision_context(job);
  if (end.preemptor) {
    // find() and not peek(): a preemptor that has ended meanwhile may be put away, and its name is
    // still worth telling.
    // The preemptor may be gone by now; then the ending names none.
    if (JobRecord* preemptor = parts_.jobs.find(*end.preemptor)) {
      if (preemptor->readiness_is_late()) parts_.jobs.mark(*preemptor, WriteUrgency::kCommit);
      context.preemptor = kube::JobReference{
          .ns = preemptor->key.ns, .name = preemptor->key.name, .uid = preemptor->object_uid()};
    }
  }
  show_times_unmarked(job, scheduler_, parts_.now);
  note_life_before_ready(job, scheduler_, parts_.now);
  totals_.ending(job, end);
  parts_.jobs.apply(job, end, context);
  gangs_.end_otherwise(job);
  statuses_.write_after(job, end.preemptor);
  const kube::JobEnding& ending = *job.wanted().ending;
  const std::string verdict{kube::to_string(ending.verdict)};
  const std::string by = ending.by ? kube::to_string(*ending.by) : "";
  base::LogFields fields = job_fields(job, {{"verdict", verdict}});
  if (!by.empty()) fields.push_back({"by", by});
  parts_.report.log("end", fields);
  tell_event(parts_.report, job, false, "Ending",
             verdict + (by.empty() ? "" : ", preempted by " + by));
}

void Decisions::on(const sched::LimitChanged& change, JobRecord& job) {
  DecisionContext context = decision_context(job);
  context.asked_limit = job.request().time_limit;
  parts_.jobs.apply(job, change, context);
}

void Decisions::on(const sched::Claim& claim, JobRecord& job) {
  parts_.jobs.apply(job, claim, decision_context(job));
  const auto& stored = job.wanted().claim;
  parts_.report.log("claim", job_fields(job, {{"nodes", stored ? stored->hostlist : "none"}}));
}

// The job has left its nodes: it has ended for good, or it waits again. Only the second clears the
// start: the pods of a finished job stay, with their logs, until the job is deleted.
void Decisions::on(const sched::StateChange& change, JobRecord& job) {
  // The tasks of an array that have records end by decisions of their own, and it ends when they
  // have (ControlLoop::end_array).
  if (job.array && is_terminal(change.state)) {
    auto& rest_ended = job.array->rest_ended.edit();
    if (!rest_ended) rest_ended = task_outcome_of(change.state);
    return parts_.jobs.mark(job, WriteUrgency::kUrgent);
  }
  DecisionContext context = decision_context(job);
  context.partition = partition_names(job.basis(), parts_.policy.configuration());
  context.end_message = job.gang->end_message;
  context.usage = usage_of(job);
  context.succeeded = done_indexes(job.object->spec, job.wanted());
  // Compared before the status takes the change over. A start that was undone returns to the queue
  // with the same count.
  const bool requeued = change.restarts != job.wanted().restarts.value_or(0);
  show_times_unmarked(job, scheduler_, parts_.now);
  totals_.changed(job, change, account_of(job));
  parts_.jobs.apply(job, change, context);
  leave_nodes(job);
  const std::string state{kube::to_string(*job.wanted().state)};
  if (is_terminal(change.state)) {
    // Users hear of failures. A job that completed, or that they canceled themselves, needs no
    // warning.
    const bool failed =
        change.state != sched::JobState::kCompleted && change.state != sched::JobState::kCancelled;
    if (failed) {
      tell_event(parts_.report, job, true, state,
                 context.end_message.empty() ? "the job has ended" : context.end_message);
    }
  } else {
    // A start that is undone is not a requeue, and has a message.
    if (requeued || !job.gang->end_message.empty()) job.last_end.edit() = job.gang->end_message;
    job.clear_start();
    if (requeued)
      tell_event(parts_.report, job, false, "Requeued",
                 "restart " + std::to_string(change.restarts));
  }
  parts_.report.log("state", job_fields(job, {{"state", state}, {"exit_code", change.exit_code}}));
  if (!job.task) return;
  JobRecord& array = parts_.jobs.array_of(job);
  if (array.wishes->judge_when_free) parts_.jobs.touch(array.uid);  // it may have been the last one
  if (is_terminal(change.state)) return;
  wishes_.tell_hold_again(array, *job.task);
  if (job.wanted().held) {
    hold_array(array, job.wanted().held->reason);
  }
}

// An image that does not exist holds one task after the other, and each that is held has an entry
// in the status of its array. When there are many, the next one would do no better.
void Decisions::hold_array(JobRecord& array, const std::string& reason) {
  if (array.request().hold || array.wanted().held) return;
  const auto held = std::ranges::count_if(array.array->tasks(), [](const auto& each) {
    return each.second->wanted().held.has_value();
  });
  if (held < kHeldTasksMax) return;
  parts_.jobs.change(array, WriteUrgency::kUrgent,
                     [&](auto& wanted) { wanted.held = kube::JobHeld{reason}; });
  tell_event(parts_.report, array, true, "ArrayHeld",
             std::to_string(held) + " of its tasks are held (" + reason +
                 "), so the others are, too; mend the job and release it");
  scheduler_.tell(sched::Hold{.job = array.id, .by_admin = true});
}

void Decisions::on(const sched::Waits& waits, JobRecord& job) {
  DecisionContext context = decision_context(job);
  context.last_end = *job.last_end;
  // A waiting job's priority may have changed together with the reason; this write carries both.
  if (!job.is_allocated()) show_priority_unmarked(job, scheduler_);
  parts_.jobs.apply(job, waits, context);
}

void Decisions::on(const sched::Planned& planned, JobRecord& job) {
  DecisionContext context = decision_context(job);
  context.stored = &job.status.stored();
  parts_.jobs.apply(job, planned, context);
}

// Stored soon, since the object of a job that has ended may be deleted at any time, and a new
// leader has nothing else to go by.
void Decisions::on(const sched::TermsChanged& change, JobRecord& job) {
  std::vector<kube::DependencyStatus> terms = job.wanted().dependency;
  for (std::size_t i = 0; i < std::min(terms.size(), change.terms.size()); ++i) {
    const kube::DependencyState state = term_state_of(change.terms[i]);
    const bool changed = std::exchange(terms[i].state, state) != state;
    if (changed && terms[i].job_id) statuses_.write_after_end(job, sched::JobId{*terms[i].job_id});
  }
  if (terms == job.wanted().dependency) return;
  parts_.jobs.change(job, WriteUrgency::kUrgent,
                     [&](auto& wanted) { wanted.dependency = std::move(terms); });
}

// How far off the last estimate was; before the start ends it.
void Decisions::count_estimate(const JobRecord& job) {
  const auto& expected = job.wanted().expected_start_time;
  if (expected) counters_.start_errors.count(parts_.now - *expected);
}

void Decisions::on(const sched::SubmitRefused& refused, JobRecord& job) {
  wishes_.submit_refused(job, refused.message);
}

void Decisions::on(const sched::CommandRefused& refused, JobRecord& job) {
  parts_.jobs.apply(job, refused, decision_context(job));
  parts_.report.log("refused", job_fields(job, {{"message", refused.message}}));
  tell_event(parts_.report, job, true, "RequestRefused", refused.message);
}

// Timetables of these nodes may have waited for the job's commit point.
void Decisions::leave_nodes(JobRecord& job) {
  for (const std::string& node : job.start->nodes) {
    parts_.nodes.leave(node, job.uid);
    timetables_.look_again(node);
  }
}

}  // namespace control
