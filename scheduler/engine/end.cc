// Endings (T5 to T7): decided once, carried out by the caller, completed with JobGone.
#include "scheduler/engine/engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sched {

// Returns true if the user and the administrator allow a requeue (13.5). A job without an existing
// partition would wait forever.
bool Engine::may_requeue(const Job& job) const {
  return job.request->requeue.value_or(cluster_.parameters().requeue_default) &&
         !partitions_of(cluster_, *job.request).empty();
}

// `kill_at` of the decision is when the last process is killed: the grace time, and then the time
// between SIGTERM and SIGKILL. Without a grace time the cores are free at once.
void Engine::begin_ending(Job& job, Ending ending) {
  if (!job.ending) decide_ending(job, std::move(ending));
}

void Engine::decide_ending(Job& job, Ending ending) {
  books_.set_ending(job, ending);
  books_.decide(End{.job = job.id,
                    .verdict = *ending.verdict,
                    .kill_at = ending.grace_end + cluster_.parameters().kill_wait,
                    .preemptor = ending.preemptor});
  if (ending.killed) return;
  if (ending.grace_end <= now_) {
    kill(job);
  } else {
    grace_timers_.emplace(ending.grace_end, job.id);
  }
}

// R2.1: cores and memory are free in the books, but the nodes are completing until they are clean.
void Engine::kill(Job& job) {
  turns_->charge(job);
  // Outside the gang the clock stops here: time in which the processes only end is not charged.
  if (!job.turn.in_gang) turns_->set_phase(job, JobClock::Phase::kIdle);
  stop_waiting_for_room(job);
  books_.release_cores(job);
  if (job.whole != nullptr) reopen(*job.whole, &job);  // it counts no more (13.4)
}

// The scheduler did not decide it: the processes ended, or the node is lost.
void Engine::end_by_itself(Job& job, JobState verdict, int exit_code) {
  // Only the loss of a node brings a job back; a program that fails has failed.
  const bool requeue = verdict == JobState::kNodeFail && may_requeue(job);
  books_.set_ending(job, Ending{.final_state = requeue ? JobState::kPending : verdict,
                                .verdict = std::nullopt,
                                .grace_end = now_,
                                .preemptor = {},
                                .exit_code = exit_code,
                                .node_failed = requeue});
}

// The caller saw the end of the processes, or lost their node, before the pods are gone: cores and
// memory are free from here on (R2.1).
void Engine::on(const JobEnding& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || job->ending) return;
  end_by_itself(*job, event.verdict, event.exit_code);
  kill(*job);
}

void Engine::on(const NodesClean& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || !job->ending) return;
  std::vector<NodeIndex> told;
  for (const std::string& name : event.nodes) {
    if (const auto node = cluster_.find_node(name)) told.push_back(*node);
  }
  std::ranges::sort(told);
  std::vector<NodeIndex> clean;
  for (const NodeAllocation& use : job->allocation.nodes) {
    if (std::ranges::binary_search(told, use.node) && !job->has_left(use.node)) {
      clean.push_back(use.node);
    }
  }
  std::ranges::sort(clean);
  if (!clean.empty()) books_.leave_nodes(*job, clean);
}

// A job without a decided end has ended by itself, and its verdict comes with the event.
void Engine::on(const JobGone& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated()) return;
  // 7.8 (recorded: rnd_qos_333): a victim that ends by itself in its grace time has completed, and
  // is not requeued.
  if (job->ending && !job->ending->killed && event.verdict == JobState::kCompleted) {
    Ending ending = *job->ending;
    ending.final_state = JobState::kCompleted;
    books_.set_ending(*job, ending);
  }
  if (!job->ending) end_by_itself(*job, event.verdict, event.exit_code);
  gone(*job);
}

// All its pods are gone (T6).
void Engine::gone(Job& job) {
  // All are read first: end() clears the ending.
  const JobState final_state = job.ending->final_state;
  job.exit_code = job.ending->exit_code;
  if (job.ending->node_failed) ++job.node_failures;
  end_allocation(job, final_state);
  if (final_state == JobState::kPending) {
    to_pending(job);
  } else {
    books_.finish(job, final_state);
  }
}

void Engine::end_allocation(Job& job, JobState next) {
  turns_->leave(job);
  books_.end(job, next);
  remove_empty_nodes();
  if (job.whole != nullptr) reopen(*job.whole, &job);
}

// The timetables of the job's nodes change, and its run time stops here.
void Engine::about_to_end(Job& job) {
  turns_->mark_nodes(job);
  limits_.over(job);
  turns_->charge(job);
  turns_->set_phase(job, JobClock::Phase::kIdle);
  priorities_.charge(job);
  stop_waiting_for_room(job);
}

// A requeue (T7).
void Engine::to_pending(Job& job) {
  job.clock = JobClock{.as_of = now_};
  job.factors.charged = base::Duration{0};
  ++job.restarts;
  job.start_time.reset();
  // T7: it counts as submitted now, and waits requeue_delay so that it does not bounce at once
  // (R7.45).
  job.submit_time = now_;
  job.not_before = not_before_again();
  // Only what is wrong with the job or its nodes counts, and not how often others preempt it. It is
  // counted again after the release.
  if (job.node_failures > cluster_.parameters().queue.max_batch_requeue) {
    job.held.set(HoldBy::kMaxRequeue);
    job.node_failures = 0;
  }
  hold_as_asked(job);
  books_.return_to_queue(job, Reason::kBeginTime, job.exit_code, now_);
  admission_.admit(job, now_);
}

base::Instant Engine::not_before_again() const {
  return now_ + cluster_.parameters().queue.requeue_delay;
}

// The holds that the request says. A user's suspend counts as priority 0, also for a job that has
// not started yet (T10). Neither a requeue nor a refused start takes them back.
void Engine::hold_as_asked(Job& job) {
  if (job.request->hold) job.held.set(HoldBy::kUser);
  if (job.request->suspend) job.held.set(HoldBy::kSuspend);
}

}  // namespace sched
