#include "scheduler/replay/told_turns.h"

#include <algorithm>

#include "scheduler/gang/components.h"
#include "scheduler/preempt/rules.h"

namespace sched::gang {

// A job that is suspended enters without a row even where it would fit (6.9 step 3). The next
// refill may give it one.
Newcomer ToldTurns::newcomer(const Job& job) const {
  Newcomer made = newcomer_of(job, cluster_);
  made.suspended = job.suspended();
  return made;
}

// The unit follows from the configuration; after a change of it rebuild() makes the lists again.
void ToldTurns::make_lists() {
  const ClusterParameters& parameters = cluster_.parameters();
  lists_.emplace(cluster_, unit_of(parameters), parameters.quirks);
}

// The lists are made with the first job, when the unit of the configuration is known.
void ToldTurns::start(Job& job) {
  if (!takes_turns(cluster_, job)) return;
  catch_up();
  if (!lists_) make_lists();
  job.turn.in_gang = true;
  lists_->start(newcomer(job));
  apply();
}

// The lists give the job's place to others at once.
void ToldTurns::leave(Job& job) {
  if (!job.turn.in_gang) return;
  catch_up();
  job.turn.in_gang = false;
  lists_->remove(job.id);
  apply();
}

// T11: a job that waits for its turn is only marked. Its cores stay its own.
bool ToldTurns::hold(Job& job) {
  catch_up();
  if (!job.suspended()) return false;
  books_.hold_by_user(job);
  if (lists_) lists_->set_held(job.id, true);
  return true;
}

// The job goes on with its next turn and not at once, so until then its reason is that of the
// rotation.
void ToldTurns::unhold(Job& job) {
  catch_up();
  books_.unhold_by_user(job);
  books_.set_reason(job, Reason::kTimeslice);
  if (!lists_) return;
  lists_->set_held(job.id, false);
  apply();
}

// 1. A job without an entry gets one while it is suspended still, so the list takes it for a job
//    that does not run (6.9 step 4).
// 2. A job that was held is entered again, at the end (6.9 step 1).
// 3. A job that waits for its turn keeps its place, and the list is not called.
void ToldTurns::resume_at_once(Job& job, bool held) {
  catch_up();
  apart_ = true;
  if (takes_turns(cluster_, job) && (!job.turn.in_gang || held)) {
    Newcomer anew = newcomer(job);
    anew.held = false;
    if (job.turn.in_gang) {  // 2
      anew.suspended = false;
      lists_->remove(job.id, false);
    }
    if (!lists_) make_lists();
    job.turn.in_gang = true;
    lists_->start(anew);
    apply();
  }
  job.clock.to(JobClock::Phase::kRunning, now_);
}

// The phase stays the same. Only the part up to now moves from the running interval into the sums.
void ToldTurns::charge(Job& job) {
  catch_up();
  if (job.turn.in_gang && now_ > job.clock.as_of) job.clock.to(job.clock.phase, now_);
}

// 1. A job that is on its way out is left out, one that was killed runs on although its list says
//    otherwise, and the release of a held job may have left actions: then each job is looked at.
// 2. Otherwise the jobs that run are those that run in the lists, so that what the tick wants done
//    is what is decided: all Suspends before all Resumes.
void ToldTurns::end_slice() {
  if (!lists_) return;
  const bool as_listed = !apart_ && !lists_->has_actions() && !books_.usage().any_completing();
  lists_->tick();
  if (!lists_->has_actions()) return;
  if (!as_listed || lists_->has_kills()) {  // 1
    catch_up();
    return apply();
  }
  behind_.resize(lists_->slots_count());  // 2
  lists_->for_each_action([this](std::int32_t slot, const Action& action) {
    if (action.kind != ActionKind::kStop) return;
    const Reason why = lists_->shadowed(action.job) ? Reason::kPreempted : Reason::kTimeslice;
    note(slot, false, why);
    books_.decide(Suspend{action.job, why});
  });
  lists_->for_each_action([this](std::int32_t slot, const Action& action) {
    if (action.kind != ActionKind::kResume) return;
    note(slot, true, Reason::kNone);
    books_.decide(Resume{action.job});
  });
  lists_->forget_actions();
  books_.changed();
}

// Stops and resumes of a job follow each other by turns. Cheap, because a tick may touch all jobs
// of a cluster: the jobs' own records are written later, by write_records().
//
// For example, a job runs until a tick at 30 s stops it, one at 60 s lets it go on, and one at 90 s
// stops it again. Noted are first = 30, last = 90 and ran = 30; what ran until 30 is in the job's
// clock. When something asks, write_records() adds the 30 s from 60 on to the run time, and the
// other 30 of the 60 s in between to the suspended time.
void ToldTurns::note(std::int32_t slot, bool runs, Reason why) {
  Behind& job = behind_[static_cast<std::size_t>(slot)];
  if (!job.is_behind) {
    job = {.first = now_, .last = now_, .is_behind = true};
    slots_behind_.push_back(slot);
  }
  if (job.runs) job.ran += now_ - job.last;
  job.last = now_;
  job.runs = runs;
  job.why = why;
}

// The clock knows itself what it counted until the first change. The times since then, of running
// and of standing still, are sums of note().
void ToldTurns::write_records() {
  for (const std::int32_t slot : slots_behind_) {
    Behind& behind = behind_[static_cast<std::size_t>(slot)];
    behind.is_behind = false;
    Job& job = *books_.find(lists_->job_at(slot));
    job.clock.to(JobClock::Phase::kIdle, behind.first);
    job.clock.run += behind.ran;
    job.clock.suspended += behind.last - behind.first - behind.ran;
    job.clock.as_of = behind.last;
    job.clock.phase = behind.runs ? JobClock::Phase::kRunning : JobClock::Phase::kSuspended;
    books_.restore_turn(job, behind.runs, behind.why);
  }
  slots_behind_.clear();
}

// The last action of each job counts; all Suspends come before all Resumes.
//
// The records decide what really changes: a job that the lists resume may be one that runs already,
// as its user let it (apart_), and one that completes is left alone.
void ToldTurns::apply() {
  std::vector<Job*> stopped;
  std::vector<Job*> resumed;
  for (const Action& action : lists_->take_last_actions()) {
    Job& job = *books_.find(action.job);
    switch (action.kind) {
      case ActionKind::kStop:
        if (job.running()) stopped.push_back(&job);
        break;
      case ActionKind::kResume:
        if (job.suspended()) resumed.push_back(&job);
        break;
      // P7: through the same path as every other victim, with its grace time.
      case ActionKind::kKill:
        apart_ = true;
        events_.must_end(job, action.by);
        break;
    }
  }
  for (Job* job : stopped) {
    if (job->completing()) continue;
    job->clock.to(JobClock::Phase::kSuspended, now_);
    books_.suspend(*job, lists_->shadowed(job->id) ? Reason::kPreempted : Reason::kTimeslice);
  }
  for (Job* job : resumed) {
    if (job->completing()) continue;
    job->clock.to(JobClock::Phase::kRunning, now_);
    books_.resume(*job);
  }
  // The next pass is an input, too, and it must look at the nodes again (R4.4).
  if (!stopped.empty() || !resumed.empty()) books_.changed();
}

// Jobs keep the order of the old lists; the others follow in job-table order. If the gang is
// switched off there are no lists, and all jobs that they had stopped go on.
void ToldTurns::rebuild() {
  catch_up();
  behind_.clear();  // the lists share their slots out again
  apart_ = false;
  std::vector<Place> places;
  if (lists_) places = lists_->places();
  lists_.reset();
  if (is_on(cluster_)) make_lists();
  // Jobs that are completing stay outside.
  for (const auto& [order, job] : books_.allocated()) job->turn.in_gang = false;
  const auto add = [&](Job& job) {
    if (!job.allocated() || !job.ready || job.completing() || job.cores_released) return;
    if (!takes_turns(cluster_, job)) {
      if (!job.suspended() || job.user_suspended) return;
      job.clock.to(JobClock::Phase::kRunning, now_);
      books_.resume(job);
      return;
    }
    job.turn.in_gang = true;
    lists_->start(newcomer(job), false);
  };
  // 6.10 step 2, then step 3: old jobs in their old order, which keeps the fairness of the
  // rotation; then jobs that were not tracked, for example those of a new partition.
  for (const Place& place : places) add(*books_.find(place.job));
  for (const auto& [order, job] : books_.allocated()) {
    if (takes_turns(cluster_, *job) && !lists_->contains(job->id)) add(*job);
  }
  if (!is_on(cluster_)) return;
  lists_->refill_all();
  apply();
}

// A question about an instant before the job's clock was last charged may give less than nothing.
base::Duration ToldTurns::run_time(const Job& job, base::Instant t) {
  catch_up();
  return std::max(job.clock.run_at(t), base::Duration{0});
}

// The time that the job stood still since its start, its turns off and the suspensions of its user.
base::Duration ToldTurns::suspend_time(const Job& job, base::Instant t) {
  catch_up();
  return job.clock.suspended_at(t);
}

// Ticks to come are not known here, so a job that runs is taken to run on, and one that is stopped
// to go on at `until`.
base::Instant ToldTurns::when_has_run(const Job& job, base::Duration work, base::Instant until) {
  catch_up();
  const base::Duration left = work - job.clock.run;
  if (job.clock.phase == JobClock::Phase::kRunning) return job.clock.as_of + left;
  return until == base::kNever ? until : until + left;
}

std::string ToldTurns::check_invariants() {
  return lists_ ? lists_->check_invariants() : std::string{};
}

}  // namespace sched::gang
