// Time goes on: wakes, passes, slices and time limits.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/engine/engine.h"
#include "scheduler/preempt/rules.h"

namespace sched {

// Everything that is due, in this order: the gang first, because the turns decide which nodes have
// running jobs; then priorities, which a pass sorts by; then endings, which free nodes; then one
// pass.
void Engine::on(const Wake&) {
  turns_->wake();
  if (!works_priorities_out()) {
    if (const auto due = period_due(); due && *due <= now_) end_period(now_);
  }
  if (works_priorities_out()) step_priorities();
  limits_.fire(now_, [this](Job& job, EndingVerdict verdict) { time_out(job, verdict); });
  retry_resumes();
  if (works_priorities_out()) return;  // the queue has no order for a pass to follow
  // A pass looks at which nodes have running jobs (R4.4). The backfill waits for the main pass.
  if (now_ < passes_wait_until()) return;
  if (pass_schedule_.is_due(now_)) {
    turns_->play();
    pass_schedule_.run(now_);
  } else if (backfill_schedule_.is_due(now_)) {
    turns_->play();
    backfill_schedule_.run(now_);
  }
}

// R9.4: usage decays, what runs is charged, and all waiting jobs get new priorities. Under the
// classic rule a user's usage counts as of when it is first asked for (R9.14), so all ask now.
void Engine::end_period(base::Instant at) {
  const bool changed = priorities_.end_period(at);
  begin_priorities(changed, [this, at](Job& job) { return priorities_.set_again(job, at); });
  const PriorityParameters& parameters = cluster_.parameters().priority;
  if (!parameters.fair_tree && parameters.weight_fair_share > 0) finish_priorities();
}

// Every waiting job will get the priority that set(job) gives it, which returns whether it is
// another one. `changed`: other priorities have changed already.
void Engine::begin_priorities(bool changed, std::function<bool(Job&)> set) {
  priorities_changed_ = changed;
  admission_.begin_priorities([this, set = std::move(set)](Job& job) {
    if (set(job)) priorities_changed_ = true;
  });
}

// After the last step a pass looks at the jobs again only if it may find something else: mostly all
// get older together and keep their order.
void Engine::step_priorities() {
  const std::optional<bool> moved = admission_.step_priorities(priorities_per_step_);
  if (moved && priorities_changed_ && (*moved || passes_read_priorities())) books_.changed();
}

void Engine::finish_priorities() {
  while (works_priorities_out()) step_priorities();
}

// Returns true if a pass depends on priorities or usage by more than the order of the queue: a
// least priority for promises, preemption by priority (7.2), or a limit on decayed run time
// (GrpWall).
bool Engine::passes_read_priorities() const {
  const ClusterParameters& parameters = cluster_.parameters();
  if (parameters.backfill.min_prio_reserve > Priority{0}) return true;
  if (preempt::enabled(cluster_)) {
    const bool by_priority = std::ranges::any_of(cluster_.partitions(), [&](PartitionIndex each) {
      return cluster_.partition(each).config.preempt_priority;
    });
    if (by_priority || parameters.preempt_priority || parameters.preempt.min_exempt_priority ||
        parameters.preempt_type == PreemptType::kQos) {
      return true;
    }
  }
  const auto limits_wall = [](const Limits& limits) { return limits.group_wall.has_value(); };
  return std::ranges::any_of(cluster_.qos(), limits_wall, &QosConfig::limits) ||
         std::ranges::any_of(cluster_.accounts().all(), limits_wall, &Association::limits);
}

// An idle cluster needs no periods: usage decays by the time that has passed, however many periods
// that are.
std::optional<base::Instant> Engine::period_due() const {
  if (books_.allocated().empty() && admission_.queue().size() == 0) return std::nullopt;
  return priorities_.next_due();
}

// A user's resume that found no free row is tried again when something changed.
void Engine::retry_resumes() {
  if (waiting_resumes_.empty() || resumes_version_ == books_.version()) return;
  // A copy: a resume that succeeds leaves the set.
  const std::set<JobId> waiting = waiting_resumes_;
  for (const JobId id : waiting) on(UserResume{id});
  resumes_version_ = books_.version();
}

// CompleteWait (3.4): no pass while a job has been completing for less, so that a wide job gets the
// nodes of one that has just ended together.
base::Instant Engine::passes_wait_until() const {
  const std::optional<base::Instant> since = books_.completing_since();
  return since ? *since + cluster_.parameters().queue.complete_wait : base::Instant{};
}

// The gang is asked last, and not if something is due now anyway: its answer may need a projection.
std::optional<base::Instant> Engine::next_due() {
  if (works_priorities_out()) return now_;
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) {
    if (at == base::kNever) return;
    at = std::max(at, now_);
    due = due ? std::min(*due, at) : at;
  };
  const base::Instant passes_from = passes_wait_until();
  if (const auto at = pass_schedule_.next_due(now_)) take(std::max(*at, passes_from));
  if (const auto at = backfill_schedule_.next_due(now_)) take(std::max(*at, passes_from));
  if (!waiting_resumes_.empty() && resumes_version_ != books_.version()) take(now_);
  if (const auto at = admission_.next_due()) take(*at);
  // A node may be what a held job waits for, and no other event may come that settles the nodes.
  const bool nodes_changed =
      cluster_.has_changes() || topology_version_ != cluster_.topology_version();
  if (nodes_changed && admission_.has_bad_constraints()) take(now_);
  if (const auto at = dependencies_.next_due()) take(*at);
  if (const auto at = period_due()) take(*at);
  if (!grace_timers_.empty()) take(grace_timers_.begin()->first);
  if (const auto at = limits_.next_due()) take(*at);
  if (due && *due == now_) return due;  // more may happen at this instant
  if (const auto at = turns_->next_due()) take(*at);
  return due;
}

// kNever for a job without an allocation or on its way out: no turn brings it there.
base::Instant Engine::when_has_run(JobId id, base::Duration work, base::Instant until) {
  const Job* job = books_.find(id);
  if (job == nullptr || !job->allocated() || job->completing()) return base::kNever;
  return turns_->when_has_run(*job, work, until);
}

// A node did not slice, and its pods ran on: that counts as run time (architecture.md 3), though
// the timetable says otherwise. A job that was not ready has no clock that runs: the event says how
// long it ran, also while it ends.
void Engine::on(const JobRan& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated()) return;
  if (!job->ready) {
    job->clock.run += std::max(event.more, base::Duration{0});
    return;
  }
  if (job->ending) return;
  turns_->charge(*job);
  if (!job->turn.in_gang) turns_->set_phase(*job, job->clock.phase);
  // No more than it was suspended: run and suspended time together stay the time since the start.
  const base::Duration more = std::clamp(event.more, base::Duration{0}, job->clock.suspended);
  job->clock.run += more;
  job->clock.suspended -= more;
  limits_.check_at_once(*job, now_);
}

// Only a replay gets passes and slices.
void Engine::on(const SliceEnd&) {
  CHECK(false, "a slice is given");
}

void Engine::on(const Pass&) {
  CHECK(false, "a pass is given");
}

void Engine::on(const TimeLimitReached& event) {
  Job* job = books_.find(event.job);
  // A suspended job never times out (R13.21).
  if (job == nullptr || !job->allocated() || job->suspended()) return;
  time_out(*job, EndingVerdict::kTimeout);
}

// T8: without a grace time. The caller sends SIGTERM and, after KillWait, SIGKILL.
void Engine::time_out(Job& job, EndingVerdict verdict) {
  const bool is_late = verdict == EndingVerdict::kDeadline;
  begin_ending(job, Ending{.final_state = is_late ? JobState::kDeadline : JobState::kTimeout,
                           .verdict = verdict,
                           .grace_end = now_,
                           .preemptor = {}});
}

}  // namespace sched
