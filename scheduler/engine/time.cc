// Own timing: what is due when, and the gang's components in the life cycle (6.8, 6.9).
#include <algorithm>

#include "base/check.h"
#include "scheduler/engine/engine.h"

namespace sched {

void Engine::on(const Wake&) {
  if (options_.told_timing) return;
  components_.advance_due(now_);
  after_gang();
  check_time_limits();
  retry_resumes();
  if (!pass_schedule_.is_due(now_)) return;
  components_.advance(now_);  // who runs now counts for the node maps (R4.4)
  after_gang();
  pass_schedule_.run(now_);
}

void Engine::on(const Pass& event) {
  if (event.main || event.backfill) pass_.run(now_, std::nullopt);
}

// A user's resume that found no free row is tried again when something changed.
void Engine::retry_resumes() {
  if (waiting_resumes_.empty() || resumes_version_ == books_.version()) return;
  const std::set<JobId> waiting = waiting_resumes_;
  for (const JobId id : waiting) on(UserResume{id});
  resumes_version_ = books_.version();
}

std::optional<base::Instant> Engine::next_due() {
  if (options_.told_timing) return std::nullopt;
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) {
    if (at == base::kNever) return;
    at = std::max(at, now_);
    due = due ? std::min(*due, at) : at;
  };
  if (const auto at = pass_schedule_.next_due(now_)) take(*at);
  if (!waiting_resumes_.empty() && resumes_version_ != books_.version()) take(now_);
  if (const auto at = admission_.next_due()) take(*at);
  if (!grace_timers_.empty()) take(grace_timers_.begin()->first);
  if (!limit_timers_.empty()) take(limit_timers_.begin()->first);
  if (due && *due == now_) return due;  // more may happen at this instant
  components_.project_stale();
  if (const auto at = components_.next_due()) take(*at);
  if (const auto at = plans_.next_due()) take(*at);
  return due;
}

base::Duration Engine::run_time(const Job& job, base::Instant t) const {
  // A plan's as_of may lie before the job joined, or before its clock was settled last.
  if (options_.told_timing || !job.in_gang) return std::max(job.clock.run_at(t), base::Duration{0});
  if (job.completing()) return job.clock.run;  // its processes are ending or have ended
  if (t >= job.clock.as_of) return job.clock.run + gang_run_time(job, job.clock.as_of, t);
  const base::Duration since = gang_run_time(job, t, job.clock.as_of);
  return std::max<base::Duration>(job.clock.run - since, base::Duration{0});
}

base::Duration Engine::suspend_time(const Job& job, base::Instant t) const {
  if (options_.told_timing || !job.in_gang) return job.clock.suspended_at(t);
  if (job.completing()) return job.clock.suspended;
  const base::Duration ran = gang_run_time(job, job.clock.as_of, t);
  return job.clock.suspended + (t - job.clock.as_of - ran);
}

// Run time in [from, to) of a job that the components track; projected as far as that needs.
base::Duration Engine::gang_run_time(const Job& job, base::Instant from, base::Instant to) const {
  if (from != to) components_.ensure_projected(job, to);
  return components_.run_time(job, from, to);
}

void Engine::settle_clock(Job& job) {
  if (!job.in_gang || now_ <= job.clock.as_of) return;
  if (options_.told_timing) return to_phase(job, job.clock.phase);
  record_run(job, now_, runs_);
  if (!job.completing()) {  // otherwise its processes are ending or have ended
    const base::Duration since = now_ - job.clock.as_of;
    const base::Duration ran = gang_run_time(job, job.clock.as_of, now_);
    job.clock.run += ran;
    job.clock.suspended += since - ran;
  }
  job.clock.as_of = now_;
}

void Engine::to_phase(Job& job, JobClock::Phase phase) {
  record_run(job, now_, runs_);
  job.clock.to(phase, now_);
}

// When it runs from the last settled instant on. A job that is being killed runs until it is gone.
void Engine::record_run(const Job& job, base::Instant until, std::vector<JobRun>& runs) const {
  const base::Instant from = job.clock.as_of;
  if (options_.publishes || !job.ready || from >= until) return;
  const bool on_nodes = job.in_gang || job.clock.phase == JobClock::Phase::kRunning ||
                        (job.completing() && !job.user_suspended);
  if (!on_nodes) return;
  JobRun run{.job = job.id, .from = from, .to = until, .timetable = nullptr, .pod = 0};
  if (gang::Component* part = job.in_gang ? components_.ensure_projected(job, until) : nullptr) {
    run.timetable = part->projection.shared_timeline();
    run.pod = part->projection.pod_of(job.id);
  }
  runs.push_back(std::move(run));
}

std::vector<JobRun> Engine::open_runs() {
  components_.project_stale();
  std::vector<JobRun> runs;
  for (const auto& [order, job] : books_.allocated()) record_run(*job, base::kNever, runs);
  return runs;
}

base::Instant Engine::when_has_run(JobId id, base::Duration work, base::Instant until) {
  const Job* job = books_.find(id);
  if (job == nullptr || !job->allocated() || job->completing()) return base::kNever;
  const base::Duration left = work - job->clock.run;
  if (job->in_gang) {
    components_.ensure_projected(*job, until);
    return components_.when_has_run(*job, job->clock.as_of, left, until);
  }
  if (job->clock.phase == JobClock::Phase::kRunning) return job->clock.as_of + left;
  return until == base::kNever ? until : until + left;
}

// What the timetable cannot tell (architecture.md 3: time that is not sliced counts as running).
void Engine::on(const JobRan& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || !job->ready || job->ending) return;
  settle_clock(*job);
  if (!job->in_gang) to_phase(*job, job->clock.phase);
  const base::Duration more = std::clamp(event.more, base::Duration{0}, job->clock.suspended);
  job->clock.run += more;
  job->clock.suspended -= more;
  arm_time_limit(*job);
  // By its timetable its next turn may be far away, or there is none (R13.21); but it has run.
  const auto over = over_time_limit(*job);
  const bool limited = !options_.told_timing && !job->user_suspended && job->time_limit && over;
  if (limited && job->clock.run >= *job->time_limit + *over) {
    disarm_time_limit(*job);
    job->limit_timer = now_;
    limit_timers_.emplace(now_, job->id);
  }
}

// Carries over what the components did: kills first, since they change who runs.
void Engine::after_gang() {
  while (true) {
    const std::vector<gang::Action> kills = components_.take_kills();
    if (kills.empty()) break;
    for (const gang::Action& kill : kills) {
      Job& victim = *books_.find(kill.job);
      if (victim.completing()) continue;  // ended by somebody else while it was stopped
      preempt(victim, preempt::effective_mode(cluster_, victim), kill.by);
      components_.set_dying(victim, now_);
    }
  }
  std::vector<Job*> stopped;
  std::vector<Job*> resumed;
  for (const JobId id : components_.take_touched()) {
    Job* job = books_.find(id);
    if (job == nullptr || !job->in_gang || job->completing()) continue;
    advance_time_limit(*job);
    components_.ensure_known_at(*job, now_);
    const bool runs = components_.runs_at(*job, now_);
    if (!runs && job->running()) stopped.push_back(job);
    if (runs && job->suspended()) resumed.push_back(job);
  }
  if (!stopped.empty()) {
    components_.project_stale();
    components_.ensure_seen({stopped.begin(), stopped.end()});
  }
  for (Job* job : stopped) {
    const Reason turn = components_.ever_runs(*job) ? Reason::kTimeslice : Reason::kPreempted;
    books_.suspend(*job, job->user_suspended ? job->reason : turn);
  }
  for (Job* job : resumed) {
    books_.resume(*job);
    if (!job->limit_timer) arm_time_limit(*job);
  }
}

// The earliest instant at which the limit can be reached; checked again then (R13.20, R13.21). Who
// does not run now reaches it in its next turn at the earliest, and is looked at once per slice at
// most; one that never runs, not at all.
void Engine::arm_time_limit(Job& job) {
  disarm_time_limit(job);
  if (options_.told_timing || !job.ready || !job.allocated() || job.ending) return;
  const auto over = over_time_limit(job);
  if (!job.time_limit || !over || job.user_suspended) return;
  const base::Duration left =
      std::max(*job.time_limit + *over - run_time(job, now_), base::Duration{1});
  job.limit_timer = now_ + left;
  if (job.in_gang) components_.ensure_known_at(job, now_);
  if (job.in_gang && !components_.runs_at(job, now_)) {
    components_.project_stale();
    components_.ensure_seen({&job});
    if (!components_.ever_runs(job)) {
      job.limit_timer.reset();
      return;
    }
    const base::Duration slice = components_.grid().slice;
    if (left < slice) {
      components_.ensure_projected(job, now_ + slice);
      job.limit_timer = components_.when_has_run(job, now_, left, now_ + slice);
    }
  }
  limit_timers_.emplace(*job.limit_timer, job.id);
}

// What happened to others of its component, at this instant, may have brought its next turn nearer.
// One that counts on nobody's turn is right whatever happens.
void Engine::advance_time_limit(Job& job) {
  if (!job.limit_timer || job.clock.as_of != now_) return;
  const auto over = over_time_limit(job);
  if (!job.time_limit || !over) return;
  if (*job.limit_timer > now_ + (*job.time_limit + *over - job.clock.run)) arm_time_limit(job);
}

void Engine::disarm_time_limit(Job& job) {
  if (job.limit_timer) limit_timers_.erase({*job.limit_timer, job.id});
  job.limit_timer.reset();
}

std::optional<base::Duration> Engine::over_time_limit(const Job& job) const {
  const auto& own = cluster_.partition(*job.partition).config.over_time_limit;
  return own ? own : cluster_.parameters().over_time_limit;
}

void Engine::check_time_limits() {
  while (!limit_timers_.empty() && limit_timers_.begin()->first <= now_) {
    const JobId id = limit_timers_.begin()->second;
    limit_timers_.erase(limit_timers_.begin());
    Job* job = books_.find(id);
    if (job == nullptr) continue;
    job->limit_timer.reset();
    if (!job->allocated() || !job->ready || job->ending) continue;
    const auto over = over_time_limit(*job);
    if (!job->time_limit || !over) continue;
    if (run_time(*job, now_) < *job->time_limit + *over) {
      arm_time_limit(*job);
      continue;
    }
    begin_ending(*job, Ending{.final_state = JobState::kTimeout,
                              .verdict = EndingVerdict::kTimeout,
                              .grace_end = now_,
                              .preemptor = {}});
  }
}

std::vector<NodePlan> Engine::take_plans(base::Instant now) {
  CHECK(options_.publishes);
  components_.project_stale();
  return plans_.take(now, [this](const Job& job, base::Instant t) { return run_time(job, t); });
}

}  // namespace sched
