// The gang's place in the life cycle (6.8 to 6.10).
#include <algorithm>

#include "scheduler/engine/engine.h"

namespace sched {

gang::Newcomer Engine::newcomer(const Job& job) const {
  gang::Newcomer made = gang::newcomer_of(job, cluster_);
  made.suspended = job.suspended();
  return made;
}

void Engine::gang_start(Job& job) {
  if (!takes_turns(job)) return;
  if (!options_.told_timing) {
    components_.start(job, now_);
    after_gang();
    return;
  }
  if (!world_) world_.emplace(cluster_, gang::unit_of(cluster_.parameters()));
  job.in_gang = true;
  world_->start(newcomer(job));
  apply_gang_actions();
}

void Engine::gang_gone(Job& job) {
  if (!job.in_gang) return;
  if (!options_.told_timing) {
    components_.leave(job, now_);
    after_gang();
    return;
  }
  job.in_gang = false;
  world_->remove(job.id);
  apply_gang_actions();
}

void Engine::mark_nodes(const Job& job) {
  if (!options_.told_timing) components_.mark(job, now_);
}

void Engine::on(const SliceEnd&) {
  if (!world_) return;
  world_->tick();
  apply_gang_actions();
}

// Per job the last word counts; all Suspends come before all Resumes.
void Engine::apply_gang_actions() {
  std::vector<Job*> stopped;
  std::vector<Job*> resumed;
  for (const gang::Action& action : world_->take_last_actions()) {
    Job& job = *books_.find(action.job);
    switch (action.kind) {
      case gang::ActionKind::kStop:
        if (job.running()) stopped.push_back(&job);
        break;
      case gang::ActionKind::kResume:
        if (job.suspended()) resumed.push_back(&job);
        break;
      case gang::ActionKind::kKill:
        preempt(job, preempt::effective_mode(cluster_, job), action.by);
        break;
    }
  }
  for (Job* job : stopped) {
    if (job->completing()) continue;
    job->clock.to(JobClock::Phase::kSuspended, now_);
    books_.suspend(*job, world_->shadowed(job->id) ? Reason::kPreempted : Reason::kTimeslice);
  }
  for (Job* job : resumed) {
    if (job->completing()) continue;
    job->clock.to(JobClock::Phase::kRunning, now_);
    books_.resume(*job);
  }
  // Passes are told too: the next one has to look at who runs now (R4.4).
  if (!stopped.empty() || !resumed.empty()) books_.changed();
}

// 6.10: jobs keep the order of the old lists; the rest follows in job-table order.
void Engine::gang_rebuild() {
  if (!options_.told_timing) {
    rebuild_components();
    return;
  }
  std::vector<gang::Place> places;
  if (world_) places = world_->places();
  world_.reset();
  if (gang_on()) world_.emplace(cluster_, gang::unit_of(cluster_.parameters()));
  for (const auto& [order, job] : books_.allocated())
    job->in_gang = false;  // who is completing stays out
  const auto add = [&](Job& job) {
    if (!job.allocated() || !job.ready || job.completing() || job.cores_released) return;
    if (!takes_turns(job)) {  // jobs that the gang had stopped go on
      if (!job.suspended() || job.user_suspended) return;
      job.clock.to(JobClock::Phase::kRunning, now_);
      books_.resume(job);
      return;
    }
    job.in_gang = true;
    world_->start(newcomer(job), false);
  };
  for (const gang::Place& place : places) add(*books_.find(place.job));
  for (const auto& [order, job] : books_.allocated()) {
    if (takes_turns(*job) && !world_->contains(job->id)) add(*job);
  }
  if (!gang_on()) return;
  world_->refill_all();
  apply_gang_actions();
}

// Jobs that the gang had stopped go on when there is no gang any more, or their partition was
// removed.
void Engine::rebuild_components() {
  std::vector<Job*> tracked;
  for (const auto& [order, job] : books_.allocated()) {
    const bool sliced = takes_turns(*job);
    if (sliced && job->ready && !job->user_suspended) {
      if (!job->in_gang) to_phase(*job, job->clock.phase);  // its partition is back
      tracked.push_back(job);
    }
    if (sliced || !job->in_gang) continue;
    components_.leave(*job, now_);
    if (job->suspended()) {
      books_.resume(*job);
    }
    if (!job->limit_timer) arm_time_limit(*job);
  }
  if (gang_on()) components_.rebuild(tracked, now_);
  after_gang();
}

}  // namespace sched
