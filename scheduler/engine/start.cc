// Starts (T2), readiness, and preemption on their behalf (7.7).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"

namespace sched {

// The job's records stay in the queue until the pass has walked it. If the job is an array, its
// first task is split off and starts; the claim was for it.
Job& Engine::start(Job& waiting, PartitionIndex partition, Fits fits) {
  if (waiting.is_array()) books_.clear_claim(waiting, true, now_);
  Job& job = waiting.is_array() ? books_.split(waiting, *waiting.array->waiting.next()) : waiting;
  if (waiting.is_array()) dependencies_.split(waiting, job);
  // 8.1 m: the backfill may start it with a lower limit than it asked for.
  job.time_limit = fits.time_limit ? fits.time_limit : limits_.limit_of(job, partition, now_);
  books_.begin(job, partition, std::move(fits.allocation), fits.sharing, now_);
  job.plan.reset();
  job.exit_code = 0;  // that of the start before
  job.clock = JobClock{.as_of = now_};
  job.factors.charged = base::Duration{0};
  started(job);
  return job;
}

// At a start and for a job that is restored, whose books take it in the same way.
void Engine::begun(Job& job) {
  turns_->begin(job);
  limits_.begun(job);
}

void Engine::on(const JobReady& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || job->ready || job->ending) return;
  become_ready(*job);
}

// The gang start 6.9, and with it start time, time limit and exempt time (architecture.md 2).
void Engine::become_ready(Job& job) {
  books_.set_ready(job, now_);
  // The limit was set at the allocation. The time until the pods were ready has brought the
  // deadline nearer.
  job.time_limit = TimeLimits::until_deadline(job, job.time_limit, now_);
  turns_->mark_nodes(job);
  // The user suspended it before it was ready: it takes part when the user resumes it.
  if (job.user_suspended) return turns_->set_phase(job, JobClock::Phase::kSuspended);
  // The clock runs before the gang hears of the job: start() may stop it at once.
  turns_->set_phase(job, JobClock::Phase::kRunning);
  turns_->start(job);
  limits_.arm(job, now_);
  turns_->mark_nodes(job);
}

// 7.7: the claim is committed before the victims' endings, and it lasts until the last of them must
// be gone.
void Engine::preempt_for(Job& preemptor, NeedsVictims needs) {
  std::vector<std::pair<Job*, PreemptMode>> victims;
  base::Instant until = now_;
  for (const Candidate& candidate : needs.victims) {
    if (!candidate.must_end()) continue;
    Job& victim = *books_.allocated().at(candidate.job->table_order);
    victims.emplace_back(&victim, candidate.mode);
    until = std::max(until, now_ + preempt::grace_time(cluster_, victim));
  }
  const ClusterParameters& parameters = cluster_.parameters();
  const base::Duration at_most = parameters.kill_wait + parameters.message_timeout;
  // Decided before the endings (architecture.md 3, commit point 4): otherwise a new leader would
  // find nodes coming free and no job for which they do.
  keep_nodes(preemptor, std::move(needs.allocation), until + at_most);
  for (const auto& [victim, mode] : victims) preempt(*victim, mode, preemptor.id);
}

void Engine::keep_nodes(Job& preemptor, Allocation nodes, base::Instant until) {
  books_.set_claim(preemptor, std::move(nodes), until);
}

// P7: a job that the gang kills gets its grace time like any other victim. Slurm's gang kills at
// once.
void Engine::must_end(Job& victim, std::optional<JobId> preemptor) {
  preempt(victim, preempt::effective_mode(cluster_, victim), preemptor);
}

// A job that was never going to run had no timer (TimeLimits::arm).
void Engine::resumed(Job& job) {
  if (!job.limit_timer) limits_.arm(job, now_);
}

// 7.7 steps 2a, 2c and 2d; also for victims that the gang stops (P7).
void Engine::preempt(Job& victim, PreemptMode mode, std::optional<JobId> preemptor) {
  const bool requeue = mode == PreemptMode::kRequeue && may_requeue(victim);
  base::Instant grace_end = now_ + grace_time(victim);
  if (victim.time_limit && grace_end > now_) {  // 7.8 step 2: no later than its own end
    turns_->charge(victim);
    const base::Duration left = *victim.time_limit - turns_->run_time(victim, now_);
    grace_end = std::min(grace_end, now_ + std::max(base::Duration{0}, left));
  }
  if (victim.request->deadline) {
    grace_end = std::max(now_, std::min(grace_end, *victim.request->deadline));
  }
  // REQUEUE of a job that may not be requeued ends it instead (7.7 step 2d).
  begin_ending(victim,
               Ending{.final_state = requeue ? JobState::kPending : JobState::kPreempted,
                      .verdict = requeue ? EndingVerdict::kRequeue : EndingVerdict::kPreempted,
                      .grace_end = grace_end,
                      .preemptor = preemptor});
}

base::Duration Engine::grace_time(const Job& victim) const {
  return preempt::grace_time(cluster_, victim);
}

// The start is undone as if it had not been: no restart is counted, the submit time stays, and the
// job competes at once, except on the nodes that refused it, or after a while if no node is to
// blame.
void Engine::on(const StartRefused& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || job->ready) return;
  if (job->ending) return gone(*job);  // its pods are, and an ending that was decided is final
  // It is not ready, so it is in no list, and other jobs ran as if it were not there.
  end_allocation(*job, JobState::kPending);
  job->clock = JobClock{.as_of = now_};
  job->factors.charged = base::Duration{0};
  // Adds to the nodes that refused this job recently instead of replacing them; otherwise two full
  // nodes would be tried alternately forever.
  if (job->retry.nodes_until <= now_) job->retry.nodes.clear();
  for (const std::string& name : event.avoid_nodes) {
    if (const auto node = cluster_.find_node(name)) job->retry.nodes.push_back(*node);
  }
  job->retry.nodes_until = std::max(job->retry.nodes_until, now_ + event.avoid_for);
  if (event.avoid_nodes.empty() && event.avoid_for.count() > 0) {
    job->retry.at = now_ + event.avoid_for;
  }
  if (event.hold) job->held.set(HoldBy::kLaunchFailed);
  hold_as_asked(*job);
  books_.return_to_queue(*job, Reason::kNone, 0, now_);
  admission_.admit(*job, now_);
  if (!event.message.empty()) set_reason(*job, job->reason, event.message);
}

}  // namespace sched
