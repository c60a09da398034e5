#include "scheduler/gang/own_turns.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sched::gang {

OwnTurns::OwnTurns(const Cluster& cluster, JobBooks& books, TurnEvents& events, bool publishes)
    : cluster_{cluster},
      books_{books},
      events_{events},
      publishes_{publishes},
      components_{cluster, books.usage(), books.table(), publishes},
      plans_{cluster, books.usage(), components_} {
  components_.on_settle([this](Job& job) { charge(job); });
}

void OwnTurns::go_to(base::Instant now, bool cluster_changes) {
  // Run time up to now is read from projections, so they must be there before time goes on.
  if (now > now_ || cluster_changes) components_.project_stale();
  if (cluster_changes) components_.project_all();
  now_ = now;
}

// Cheaper than play(): jobs that merely end or begin their turn are not looked at, and keep the
// state of their last one until play().
void OwnTurns::wake() {
  components_.advance_due(now_);
  carry_over();
}

void OwnTurns::play() {
  components_.advance(now_);
  carry_over();
}

// Two kinds of work come due without an event: a component has something to do (a pending op, a
// kill), and a timetable whose rewrite was put off must be published a lead before it takes
// effect.
std::optional<base::Instant> OwnTurns::next_due() {
  components_.project_stale();
  const std::optional<base::Instant> change = components_.next_due();
  const std::optional<base::Instant> rewrite = plans_.next_due();
  return change && rewrite ? std::min(change, rewrite) : (change ? change : rewrite);
}

void OwnTurns::begin(const Job& job) {
  plans_.begin(job);
  mark_nodes(job);
}

// A job whose partition no longer exists, or that is in a cluster without gang, runs without
// turns.
void OwnTurns::start(Job& job) {
  if (!takes_turns(cluster_, job)) return;
  components_.start(job, now_);
  carry_over();
}

void OwnTurns::leave(Job& job) {
  if (!job.turn.in_gang) return;
  components_.leave(job, now_);
  carry_over();
}

// 1. Kills first, since they change which jobs run; an ending may bring about more of them.
// 2. For the jobs that it may concern: which of them stop, which go on, and which stay stopped for
//    another reason, since a job of a higher tier came between two of their turns, or went.
// 3. All Suspends come before all Resumes.
void OwnTurns::carry_over() {
  while (true) {
    const std::vector<Action> kills = components_.take_kills();
    if (kills.empty()) break;
    for (const Action& kill : kills) {
      Job& victim = *books_.find(kill.job);
      if (victim.completing()) continue;  // another ending came first while it was stopped
      events_.must_end(victim, kill.by);
      components_.set_dying(victim, now_);
    }
  }
  std::vector<Job*> stopped;
  std::vector<Job*> resumed;
  std::vector<Job*> stays;  // stopped already, perhaps for another reason from now on
  for (const JobId id : components_.take_touched()) {
    Job* job = books_.find(id);
    if (job == nullptr || !job->turn.in_gang || job->completing()) continue;
    events_.times_changed(*job);
    const bool runs = runs_now(*job);
    if (!runs && job->running()) stopped.push_back(job);
    if (runs && job->suspended()) resumed.push_back(job);
    if (!runs && job->suspended() && !job->user_suspended &&
        (job->reason == Reason::kPreempted || components_.may_lose_turns(*job))) {
      stays.push_back(job);
    }
  }
  // The reason of a stopped job depends on whether it has turns to come, so all components
  // concerned are projected far enough before the first answer is read.
  if (!stopped.empty() || !stays.empty()) {
    components_.project_stale();
    std::vector<const Job*> asked{stopped.begin(), stopped.end()};
    asked.insert(asked.end(), stays.begin(), stays.end());
    components_.ensure_seen(asked);
  }
  // A job that never has a turn waits for a job of a higher tier to end; the others wait for the
  // next slice.
  const auto reason_of = [this](const Job& job) {
    return components_.ever_runs(job) ? Reason::kTimeslice : Reason::kPreempted;
  };
  for (Job* job : stopped) {
    books_.suspend(*job, job->user_suspended ? job->reason : reason_of(*job));
  }
  for (Job* job : stays) {
    const Reason why = reason_of(*job);
    if (why != job->reason) books_.suspend(*job, why);
  }
  for (Job* job : resumed) {
    books_.resume(*job);
    events_.resumed(*job);
  }
}

bool OwnTurns::runs_now(const Job& job) {
  components_.ensure_known_at(job, now_);
  return components_.runs_at(job, now_);
}

// Timeslice: a later slot is its own. Preempted: no slot is, so only the end of another job helps.
Reason OwnTurns::why_stopped(const Job& job) {
  components_.ensure_seen({&job});
  return components_.ever_runs(job) ? Reason::kTimeslice : Reason::kPreempted;
}

// Moves the clock from the last charge to now. Time in which the job had its turn counts as run
// time, the rest as suspended time (R6.41). It must precede every change of the projection, which
// is the only record of the turns.
void OwnTurns::charge(Job& job) {
  if (!job.turn.in_gang || now_ <= job.clock.as_of) return;
  record_run(job, now_, runs_);
  if (!job.completing()) {  // otherwise its processes are ending or have ended
    const base::Duration since = now_ - job.clock.as_of;
    const base::Duration ran = ran_between(job, job.clock.as_of, now_);
    job.clock.run += ran;
    job.clock.suspended += since - ran;
  }
  job.clock.as_of = now_;
}

void OwnTurns::set_phase(Job& job, JobClock::Phase phase) {
  record_run(job, now_, runs_);
  job.clock.to(phase, now_);
}

// When it runs from the last charged instant on. A job that is being killed runs until it is gone.
void OwnTurns::record_run(const Job& job, base::Instant until, std::vector<JobRun>& runs) const {
  const base::Instant from = job.clock.as_of;
  if (publishes_ || !job.ready || from >= until) return;
  const bool on_nodes = job.turn.in_gang || job.clock.phase == JobClock::Phase::kRunning ||
                        (job.completing() && !job.user_suspended);
  if (!on_nodes) return;
  JobRun run{.job = job.id, .from = from, .to = until, .timetable = nullptr, .pod = 0};
  if (Component* part = job.turn.in_gang ? components_.ensure_projected(job, until) : nullptr) {
    // Shared, not copied: the recipient reads run(t) between `from` and `to` out of it whenever it
    // wants.
    run.timetable = part->projection.shared_timeline();
    run.pod = part->projection.pod_of(job.id);
  }
  runs.push_back(std::move(run));
}

// A slice of a new length changes every published timetable, also those in which no job turns at
// other times than before.
void OwnTurns::configure() {
  const base::Duration slice_before = components_.grid().slice;
  components_.configure(now_);
  if (components_.grid().slice == slice_before) return;
  for (const auto& [node, plan] : plans_.published()) {  // one slice in all that is published
    components_.dirty_nodes().set_no_later(node, now_);
  }
}

// 1. Jobs whose partition is back take part again; those without a partition, or all if the gang is
// off, leave and run on. (Slurm cancels jobs of a removed partition when it restarts, R6.22.)
// 2. The components are made again in the order of the old lists.
void OwnTurns::rebuild() {
  std::vector<Job*> tracked;
  for (const auto& [order, job] : books_.allocated()) {
    const bool sliced = takes_turns(cluster_, *job);
    if (sliced && job->ready && !job->user_suspended) {
      if (!job->turn.in_gang) set_phase(*job, job->clock.phase);  // its partition is back
      tracked.push_back(job);
    }
    if (sliced || !job->turn.in_gang) continue;
    components_.leave(*job, now_);
    if (job->completing()) set_phase(*job, JobClock::Phase::kIdle);
    if (job->suspended()) books_.resume(*job);
    events_.resumed(*job);
  }
  if (is_on(cluster_)) components_.rebuild(tracked, now_);
  carry_over();
}

// 1. The lists as of each plan, merged where nodes share jobs and advanced to now. A ready job in
//    no plan joins as FILLER.
// 2. Jobs begin in the state that they are in now; nothing is decided.
// 3. Published plans stand until one must differ.
void OwnTurns::restore(const std::vector<NodePlan>& published) {
  if (is_on(cluster_)) {
    components_.restore_published(published, now_);
    for (const auto& [order, job] : books_.allocated()) {
      if (!job->ready || job->user_suspended || job->turn.in_gang || !takes_turns(cluster_, *job)) {
        continue;
      }
      components_.start(*job, now_);
    }
    components_.project_stale();
    // The leader before has reported whether a job runs, so it is restored and not decided.
    for (const JobId id : components_.take_touched()) {
      Job* job = books_.find(id);
      if (job == nullptr || !job->turn.in_gang || job->completing()) continue;
      const bool runs = runs_now(*job);
      books_.restore_turn(*job, runs, runs ? Reason::kNone : why_stopped(*job));
    }
    carry_over();
  }
  if (!publishes_) return;
  // Each published node is looked at once: its plan may need to differ, or be withdrawn.
  for (const NodePlan& plan : published) {
    if (cluster_.exists(plan.node) && !plan.entries.empty()) plans_.set_published(plan);
    components_.dirty_nodes().set_no_later(plan.node, now_);
  }
}

// The answer for `t` may differ from the job's state, which is as of its last decision.
std::optional<Turns::Turn> OwnTurns::turn_at(const Job& job, base::Instant t) {
  if (!job.turn.in_gang || job.completing()) return std::nullopt;
  components_.ensure_known_at(job, t);
  if (components_.runs_at(job, t)) return Turn{true, Reason::kNone};
  return Turn{false, job.user_suspended ? job.reason : why_stopped(job)};
}

// REQUIRES: the job takes part. Projects as far as needed.
base::Duration OwnTurns::ran_between(const Job& job, base::Instant from, base::Instant to) {
  if (from != to) components_.ensure_projected(job, to);
  return components_.run_time(job, from, to);
}

base::Duration OwnTurns::run_time(const Job& job, base::Instant t) {
  // A plan's as_of may lie before the job joined, or before its clock was charged last.
  if (!job.turn.in_gang) return std::max(job.clock.run_at(t), base::Duration{0});
  if (job.completing()) return job.clock.run;  // its processes are ending or have ended
  // The clock is charged at `as_of`; later instants add what the projection says, earlier ones take
  // it away.
  if (t >= job.clock.as_of) return job.clock.run + ran_between(job, job.clock.as_of, t);
  const base::Duration since = ran_between(job, t, job.clock.as_of);
  return std::max<base::Duration>(job.clock.run - since, base::Duration{0});
}

// As run_time(), with the time in which the projection does not run the job.
base::Duration OwnTurns::suspend_time(const Job& job, base::Instant t) {
  if (!job.turn.in_gang) return job.clock.suspended_at(t);
  if (job.completing()) return job.clock.suspended;
  if (t >= job.clock.as_of) {
    return job.clock.suspended + (t - job.clock.as_of - ran_between(job, job.clock.as_of, t));
  }
  const base::Duration since = job.clock.as_of - t - ran_between(job, t, job.clock.as_of);
  return std::max<base::Duration>(job.clock.suspended - since, base::Duration{0});
}

// 1. In the gang the projection knows the turns to come.
// 2. A job outside the gang that runs needs just what is left.
base::Instant OwnTurns::when_has_run(const Job& job, base::Duration work, base::Instant until) {
  const base::Duration left = work - job.clock.run;
  if (job.turn.in_gang) {
    components_.ensure_projected(job, until);
    return components_.when_has_run(job, job.clock.as_of, left, until);
  }
  if (job.clock.phase == JobClock::Phase::kRunning) return job.clock.as_of + left;
  // Stopped outside the gang: only an event lets it go on, so if none comes by `until` it needs
  // `left` from then on.
  return until == base::kNever ? until : until + left;
}

// kNever for a job under a shadow: the end of its preemptor is not part of its rotation. A job that
// is not ready yet is taken to start now, and one that its user has suspended to go on now: since
// when it stands still says nothing about its end, and a new leader does not know that.
base::Instant OwnTurns::expected_end(const Job& job, base::Duration limit, base::Instant until) {
  if (job.turn.component != nullptr) {
    components_.project_stale();
    components_.ensure_seen({&job});
    return components_.ever_runs(job) ? when_has_run(job, limit, until) : base::kNever;
  }
  const base::Duration left = limit - job.clock.run;
  return (job.ready && !job.user_suspended ? job.clock.as_of : now_) + left;
}

// A job that does not run now gets there in its next turn at the earliest. It is looked at once in
// a slice, so that only a turn that is near must be found exactly.
std::optional<base::Instant> OwnTurns::earliest(const Job& job, base::Duration more) {
  if (!job.turn.in_gang || runs_now(job)) return now_ + more;
  components_.project_stale();
  components_.ensure_seen({&job});
  if (!components_.ever_runs(job)) return std::nullopt;
  const base::Duration slice = components_.grid().slice;
  if (more >= slice) return now_ + more;
  components_.ensure_projected(job, now_ + slice);
  return components_.when_has_run(job, now_, more, now_ + slice);
}

std::vector<NodePlan> OwnTurns::take_plans(base::Instant now) {
  CHECK(publishes_);
  components_.project_stale();
  return plans_.take(now, [this](const Job& job, base::Instant t) { return run_time(job, t); });
}

std::vector<NodePlan> OwnTurns::published() const {
  std::vector<NodePlan> plans;
  for (const auto& [node, plan] : plans_.published()) plans.push_back(plan);
  return plans;
}

// The runs that go on have no end yet: a history that ends now lacks them.
std::vector<JobRun> OwnTurns::open_runs() {
  components_.project_stale();
  std::vector<JobRun> runs;
  for (const auto& [order, job] : books_.allocated()) record_run(*job, base::kNever, runs);
  return runs;
}

std::string OwnTurns::check_invariants() {
  components_.project_stale();
  return components_.check_invariants(now_);
}

}  // namespace sched::gang
