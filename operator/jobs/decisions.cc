// The scheduler's decisions, as they are to be written: each changes the job's wanted status and
// says how urgent that is.
#include <algorithm>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"
#include "operator/translate/allocation.h"
#include "operator/translate/reason_names.h"

namespace control {
namespace {

bool is_system_hold(sched::Reason reason) {
  return reason == sched::Reason::kJobHeldAdmin || reason == sched::Reason::kJobHoldMaxRequeue ||
         reason == sched::Reason::kLaunchFailedRequeuedHeld;
}

}  // namespace

void ControlLoop::apply(const sched::Decision& decision) {
  std::visit(
      [this](const auto& one) {
        JobRecord* job = find_job(one.job);
        if (job == nullptr) return;
        on(one, *job);
        touch(job->uid);
        status_jobs_.insert(job->uid);
      },
      decision);
}

void ControlLoop::on(const sched::Start& start, JobRecord& job) {
  ++counters_.starts;
  clear_start(job);
  if (!std::exchange(job.pod_warning, {}).empty()) show_accepted(job);
  job.start_refusal.clear();
  kube::JobStatus& wanted = job.wanted();
  wanted.state = kube::JobState::kRunning;
  wanted.reason.clear();
  wanted.message.clear();
  wanted.partition = scheduler_.partition_name(start.partition);
  wanted.allocation = encode_allocation(
      start.allocation,
      [this](sched::NodeIndex node) -> const std::string& { return scheduler_.node_name(node); });
  wanted.starts = wanted.starts.value_or(0) + 1;
  wanted.start_time.reset();
  wanted.end_time.reset();
  wanted.expected_start_time.reset();
  wanted.ending.reset();
  wanted.claim.reset();
  wanted.exit_code.reset();
  // The start's own: its lastTransitionTime is when it was decided, also after an earlier start.
  std::erase_if(wanted.conditions, [](const auto& c) { return c.type == kube::kReady; });
  job.set_condition(kube::kReady, kube::ConditionStatus::kFalse, "Starting",
                    "its pods are being started", now_);
  job.set_condition(kube::kCompleting, kube::ConditionStatus::kFalse, "NotEnding",
                    "its end is not decided", now_);
  show_times(job);
  take_slots(job);
  mark(job, WriteUrgency::kCommit);
  counts_dirty_ = true;
  log("start", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                   " partition=" + wanted.partition + " nodes=" + wanted.allocation->hostlist +
                   " starts=" + std::to_string(*wanted.starts));
  event(job, false, "Started",
        "on " + wanted.allocation->hostlist + " in partition " + wanted.partition);
}

void ControlLoop::on(const sched::Suspend& suspend, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  wanted.state = kube::JobState::kSuspended;
  wanted.reason = std::string{reason_name(suspend.cause)};
  wanted.message.clear();
  show_times(job);
  counts_dirty_ = true;
  // A turn of the rotation is no change of the base state; the timetables say it.
  if (suspend.cause == sched::Reason::kTimeslice) return mark(job, WriteUrgency::kInforms);
  mark(job, WriteUrgency::kUrgent);
  log("suspend",
      "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " reason=" + wanted.reason);
  event(job, false, "Suspended", "reason " + wanted.reason);
}

void ControlLoop::on(const sched::Resume&, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  const bool by_slice = wanted.reason == reason_name(sched::Reason::kTimeslice);
  wanted.state = kube::JobState::kRunning;
  wanted.reason.clear();
  wanted.message.clear();
  show_times(job);
  counts_dirty_ = true;
  if (by_slice) return mark(job, WriteUrgency::kInforms);
  mark(job, WriteUrgency::kUrgent);
  log("resume", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  event(job, false, "Resumed", "it runs again");
}

void ControlLoop::on(const sched::End& end, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  kube::JobEnding ending;
  ending.verdict = verdict_of(end.verdict);
  ending.since = now_;
  ending.grace_end = end.kill_at;
  if (end.preemptor) {
    ending.reason = std::string{reason_name(sched::Reason::kPreempted)};
    if (const JobRecord* preemptor = find_job(*end.preemptor)) {
      ending.by = kube::JobReference{
          .ns = preemptor->key.ns, .name = preemptor->key.name, .uid = preemptor->uid};
    }
  } else {
    ending.reason = std::string{kube::to_string(ending.verdict)};
  }
  const std::string by = ending.by ? kube::to_string(*ending.by) : "";
  wanted.ending = ending;
  job.start.undo.reset();  // the end is decided by somebody else now
  job.start.commit_after = end.preemptor;
  show_completing(job);
  show_times(job);
  mark(job, WriteUrgency::kCommit);
  log("end", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " verdict=" +
                 std::string{kube::to_string(ending.verdict)} + (by.empty() ? "" : " by=" + by));
  event(job, false, "Ending",
        std::string{kube::to_string(ending.verdict)} + (by.empty() ? "" : ", preempted by " + by));
}

void ControlLoop::on(const sched::Claim& claim, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  if (!claim.claim) {
    wanted.claim.reset();
  } else {
    const kube::Allocation nodes = encode_allocation(
        *claim.claim,
        [this](sched::NodeIndex node) -> const std::string& { return scheduler_.node_name(node); });
    wanted.claim = kube::JobClaim{.hostlist = nodes.hostlist,
                                  .cores = nodes.shares.size() == 1 ? nodes.shares[0].cores : "",
                                  .since = now_,
                                  .until = claim.until};
  }
  mark(job, WriteUrgency::kCommit);
  log("claim", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                   " nodes=" + (wanted.claim ? wanted.claim->hostlist : "none"));
}

void ControlLoop::on(const sched::StateChange& change, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  show_times(job);
  wanted.state = state_of(change.state);
  wanted.reason = std::string{reason_name(change.reason)};
  wanted.message.clear();
  wanted.exit_code = change.exit_code;
  const bool requeued = change.restarts != wanted.restarts.value_or(0);
  wanted.restarts = change.restarts;
  wanted.claim.reset();
  wanted.expected_start_time.reset();
  if (is_terminal(change.state)) {
    finish(job, change);
  } else {
    clear_start(job);
    wanted.ending.reset();
    wanted.allocation.reset();
    wanted.partition = partition_names(job.basis, policy_.configuration());
    wanted.start_time.reset();
    wanted.run_time.reset();
    wanted.suspend_time.reset();
    wanted.preempt_eligible_time.reset();
    wanted.eligible_time = change.eligible_at;
    if (requeued) wanted.submit_time = now_;  // T7; of a start that is undone it stays
    show_gone(job, "NotStarted");
    if (is_system_hold(change.reason)) wanted.held = kube::JobHeld{wanted.reason};
    if (requeued) event(job, false, "Requeued", "restart " + std::to_string(change.restarts));
  }
  mark(job, WriteUrgency::kCommit);
  counts_dirty_ = true;
  log("state", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                   " state=" + std::string{kube::to_string(*wanted.state)} +
                   " exit_code=" + std::to_string(change.exit_code));
}

void ControlLoop::finish(JobRecord& job, const sched::StateChange& change) {
  kube::JobStatus& wanted = job.wanted();
  const std::string name{kube::to_string(*wanted.state)};
  if (wanted.ending && wanted.reason.empty()) wanted.reason = wanted.ending->reason;
  if (!job.start.end_message.empty()) wanted.message = job.start.end_message;
  wanted.end_time = now_;
  wanted.ending.reset();
  wanted.held.reset();
  const std::string message =
      job.start.end_message.empty() ? "the job has ended" : job.start.end_message;
  const bool complete = wanted.state == kube::JobState::kCompleted;
  show_gone(job, name);
  job.set_condition(kube::kFinished, kube::ConditionStatus::kTrue, name, message, now_);
  job.set_condition(complete ? kube::kJobComplete : kube::kJobFailed, kube::ConditionStatus::kTrue,
                    name, message, now_);
  leave_nodes(job);
  const bool failed =
      change.state != sched::JobState::kCompleted && change.state != sched::JobState::kCancelled;
  event(job, failed, name, message);
}

void ControlLoop::on(const sched::Waits& waits, JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  wanted.reason = std::string{reason_name(waits.reason)};
  // Until when it waits is its eligibleTime; why is worth more.
  const bool backs_off = waits.reason == sched::Reason::kBeginTime && !job.start_refusal.empty();
  wanted.message = backs_off ? job.start_refusal : waits.message;
  wanted.expected_start_time = waits.expected_start;
  if (!job.is_allocated()) {
    if (is_system_hold(waits.reason)) {
      wanted.held = kube::JobHeld{wanted.reason};
      mark(job, WriteUrgency::kUrgent);
    }
  }
  mark(job, WriteUrgency::kInforms);
}

void ControlLoop::on(const sched::Refused& refused, JobRecord& job) {
  if (!scheduler_.job(job.id, now_)) {  // its submission: it is tried again when that may change
    job.submitted = false;
    return refuse(job, {refused.message});
  }
  job.wanted().message = refused.message;
  mark(job, WriteUrgency::kInforms);
  log("refused", "job=" + kube::to_string(job.key) + " message=\"" + refused.message + "\"");
  event(job, true, "RequestRefused", refused.message);
}

// The pods of its present start, from the allocation that is to be stored.
void ControlLoop::take_slots(JobRecord& job) {
  job.take_slots({});
  if (!job.wanted().allocation) return;
  auto slots =
      pod_slots({job.key.name, job.uid, job.wanted().starts.value_or(0)}, *job.wanted().allocation,
                job.object->spec.pod_policy.value_or(kube::PodPolicy::kPerNode));
  if (!slots.ok()) {
    warn("allocation cannot be read",
         "job=" + kube::to_string(job.key) + " error=\"" + slots.error().message + "\"");
    return;
  }
  job.take_slots(std::move(*slots));
  for (const std::string& node : job.start.nodes) nodes_[node].jobs.insert(job.uid);
}

void ControlLoop::leave_nodes(JobRecord& job) {
  for (const std::string& name : job.start.nodes) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) continue;
    node->second.jobs.erase(job.uid);
    dirty_nodes_.insert(name);
    changed_nodes_.insert(name);
  }
}

void ControlLoop::clear_start(JobRecord& job) {
  leave_nodes(job);
  job.clear_start();
  job.end_condition(kube::kNeverFrozen, "NotStarted", "it was about an earlier start", now_);
}

void ControlLoop::show_times(JobRecord& job) {
  const auto view = scheduler_.job(job.id, now_);
  if (!view) return;
  kube::JobStatus& wanted = job.wanted();
  wanted.priority = view->priority.value();
  if (view->eligible_time != base::Instant{}) wanted.eligible_time = view->eligible_time;
  if (!view->ready) return;
  if (view->start_time) wanted.start_time = view->start_time;
  wanted.preempt_eligible_time = view->preempt_eligible_time;
  wanted.run_time = kube::RunTime{view->run_time, now_};
  wanted.suspend_time = kube::RunTime{view->suspend_time, now_};
}

// Of a job that has no nodes any more.
void ControlLoop::show_gone(JobRecord& job, const std::string& reason) {
  job.end_condition(kube::kReady, reason, "none of its pods runs", now_);
  job.end_condition(kube::kCompleting, reason, "its pods are gone", now_);
}

void ControlLoop::show_completing(JobRecord& job) {
  job.set_condition(kube::kCompleting, kube::ConditionStatus::kTrue, "Ending",
                    "its pods are being ended", now_);
}

}  // namespace control
