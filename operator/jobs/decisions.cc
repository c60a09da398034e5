// What the scheduler's decisions mean for the operator: the wanted status (status_after.h), the
// pods and nodes of a start, and what is told.
#include "operator/jobs/status_after.h"

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {

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

DecisionContext ControlLoop::decision_context(const JobRecord& job) const {
  return {.now = now_,
          .generation = job.object->metadata.generation,
          .node_name = [this](sched::NodeIndex node) -> const std::string& {
            return scheduler_.node_name(node);
          }};
}

void ControlLoop::take(JobRecord& job, StatusAfter after) {
  job.wanted() = std::move(after.status);
  mark(job, after.urgency);
}

void ControlLoop::on(const sched::Start& start, JobRecord& job) {
  ++counters_.starts;
  leave_nodes(job);
  job.clear_start();
  if (!std::exchange(job.pod_warning, {}).empty()) show_accepted(job);
  job.start_refusal.clear();
  show_times(job);
  DecisionContext context = decision_context(job);
  context.partition = scheduler_.partition_name(start.partition);
  take(job, status_after(start, std::move(job.wanted()), context));
  take_slots(job);
  counts_dirty_ = true;
  const kube::JobStatus& wanted = job.wanted();
  log("start", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                   " partition=" + wanted.partition + " nodes=" + wanted.allocation->hostlist +
                   " starts=" + std::to_string(*wanted.starts));
  event(job, false, "Started",
        "on " + wanted.allocation->hostlist + " in partition " + wanted.partition);
}

void ControlLoop::on(const sched::Suspend& suspend, JobRecord& job) {
  show_times(job);
  StatusAfter after = status_after(suspend, std::move(job.wanted()), decision_context(job));
  const bool is_told = after.urgency != WriteUrgency::kInforms;
  take(job, std::move(after));
  counts_dirty_ = true;
  if (!is_told) return;
  const std::string& reason = job.wanted().reason;
  log("suspend",
      "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " reason=" + reason);
  event(job, false, "Suspended", "reason " + reason);
}

void ControlLoop::on(const sched::Resume& resume, JobRecord& job) {
  show_times(job);
  StatusAfter after = status_after(resume, std::move(job.wanted()), decision_context(job));
  const bool is_told = after.urgency != WriteUrgency::kInforms;
  take(job, std::move(after));
  counts_dirty_ = true;
  if (!is_told) return;
  log("resume", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  event(job, false, "Resumed", "it runs again");
}

void ControlLoop::on(const sched::End& end, JobRecord& job) {
  DecisionContext context = decision_context(job);
  if (end.preemptor) {
    if (const JobRecord* preemptor = find_job(*end.preemptor)) {
      context.preemptor = kube::JobReference{
          .ns = preemptor->key.ns, .name = preemptor->key.name, .uid = preemptor->uid};
    }
  }
  show_times(job);
  take(job, status_after(end, std::move(job.wanted()), context));
  job.start.undo.reset();  // another reason ends it now
  job.start.commit_after = end.preemptor;
  const kube::JobEnding& ending = *job.wanted().ending;
  const std::string verdict{kube::to_string(ending.verdict)};
  const std::string by = ending.by ? kube::to_string(*ending.by) : "";
  log("end", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                 " verdict=" + verdict + (by.empty() ? "" : " by=" + by));
  event(job, false, "Ending", verdict + (by.empty() ? "" : ", preempted by " + by));
}

void ControlLoop::on(const sched::Claim& claim, JobRecord& job) {
  take(job, status_after(claim, std::move(job.wanted()), decision_context(job)));
  const auto& stored = job.wanted().claim;
  log("claim", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                   " nodes=" + (stored ? stored->hostlist : "none"));
}

void ControlLoop::on(const sched::StateChange& change, JobRecord& job) {
  DecisionContext context = decision_context(job);
  context.partition = partition_names(job.basis, policy_.configuration());
  context.end_message = job.start.end_message;
  const bool requeued = change.restarts != job.wanted().restarts.value_or(0);
  show_times(job);
  take(job, status_after(change, std::move(job.wanted()), context));
  leave_nodes(job);
  const std::string state{kube::to_string(*job.wanted().state)};
  if (is_terminal(change.state)) {
    const bool failed =
        change.state != sched::JobState::kCompleted && change.state != sched::JobState::kCancelled;
    event(job, failed, state,
          context.end_message.empty() ? "the job has ended" : context.end_message);
  } else {
    job.clear_start();
    if (requeued) event(job, false, "Requeued", "restart " + std::to_string(change.restarts));
  }
  counts_dirty_ = true;
  log("state", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " state=" + state +
                   " exit_code=" + std::to_string(change.exit_code));
}

void ControlLoop::on(const sched::Waits& waits, JobRecord& job) {
  DecisionContext context = decision_context(job);
  context.start_refusal = job.start_refusal;
  take(job, status_after(waits, std::move(job.wanted()), context));
}

// It is submitted again when that may change.
void ControlLoop::on(const sched::SubmitRefused& refused, JobRecord& job) {
  job.submitted = false;
  refuse(job, {refused.message});
}

void ControlLoop::on(const sched::CommandRefused& refused, JobRecord& job) {
  take(job, status_after(refused, std::move(job.wanted()), decision_context(job)));
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
  for (const std::string& node : job.start.nodes) nodes_.enter(node, job.uid);
}

void ControlLoop::leave_nodes(JobRecord& job) {
  for (const std::string& node : job.start.nodes) {
    nodes_.leave(node, job.uid);
    timetables_.look_again(node);
  }
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

void ControlLoop::show_completing(JobRecord& job) {
  job.set_condition(kube::kCompleting, kube::ConditionStatus::kTrue, "Ending",
                    "its pods are being ended", now_);
}

}  // namespace control
