#include "operator/jobs/run_times.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/wellknown.h"
#include "operator/jobs/status_after.h"

namespace control {
namespace {

constexpr base::Duration kPeriod = std::chrono::minutes{1};
// Run times that differ by less are the same to readers.
constexpr base::Duration kTolerance = std::chrono::seconds{1};

// Returns true if the stored times say, brought up to now, what the scheduler knows of a job that
// runs, and nothing else is to be written.
bool is_known_to_readers(const JobRecord& job, const sched::JobView& view, base::Instant now) {
  const kube::JobStatus& stored = job.status.stored();
  if (!stored.run_time || !stored.suspend_time) return false;
  const base::Duration run = stored.run_time->elapsed + (now - stored.run_time->as_of);
  const base::Duration stood = stored.suspend_time->elapsed;
  if (std::chrono::abs(run - view.run_time) >= kTolerance) return false;
  if (std::chrono::abs(stood - view.suspend_time) >= kTolerance) return false;
  kube::JobStatus same = job.wanted();
  same.run_time = stored.run_time;
  same.suspend_time = stored.suspend_time;
  same.term = stored.term;
  return same == stored;
}

// The longest time of a pod that has ended; nullopt if there is none.
std::optional<LifeBeforeReady> life_of_ended(const JobRecord& job, base::Instant now) {
  base::Duration longest{0};
  for (const SlotPod& one : job.start->slot_pods) {
    if (one.runs || !one.first_started || !one.last_finished) continue;
    longest = std::max(longest, *one.last_finished + one.clock_behind - *one.first_started);
  }
  if (longest == base::Duration{0}) return std::nullopt;
  return LifeBeforeReady{now - longest, now};
}

}  // namespace

void show_times_unmarked(JobRecord& job, const SchedulerDriver& scheduler, base::Instant now) {
  const auto view = scheduler.view(job.id);
  if (!view) return;
  kube::JobStatus& wanted = job.wanted_unmarked();
  wanted.priority = view->priority.value();
  if (view->eligible_time != base::Instant{}) wanted.eligible_time = view->eligible_time;
  // A job that is not ready has no run time: the times of an earlier start, or of its containers,
  // stay.
  if (!view->ready) return;
  if (view->start_time) wanted.start_time = view->start_time;
  wanted.preempt_eligible_time = view->preempt_eligible_time;
  // The instant goes with it, so that a reader can add what has passed since while the job runs.
  wanted.run_time = kube::RunTime{view->run_time, now};
  wanted.suspend_time = kube::RunTime{view->suspend_time, now};
}

// kubelet writes startedAt and finishedAt by the clock of its node, in whole seconds, and two nodes
// may disagree. By the operator's clock it is no more than the time since its nodes were allocated.
// If that clock cannot be trusted, which may be hours off, what counts is how long a pod ran that
// has ended, by its node's clock.
std::optional<LifeBeforeReady> life_before_ready(const JobRecord& job, base::Instant now,
                                                 bool is_trusted) {
  if (kube::is_true(job.wanted().conditions, kube::kReady)) return std::nullopt;
  if (!is_trusted) return life_of_ended(job, now);
  std::optional<base::Instant> first, last;
  bool runs = false;
  for (const SlotPod& one : job.start->slot_pods) {
    if (one.first_started) {
      // Where the node's clock is ahead it seems to begin later than it was seen.
      const auto began = std::min(*one.first_started, one.seen_started.value_or(now));
      first = std::min(first.value_or(began), began);
    }
    if (one.last_finished)
      last = std::max(last, std::optional{*one.last_finished + one.clock_behind});
    runs = runs || one.runs;
  }
  if (!first) return std::nullopt;
  const base::Instant allocated = std::min(starting_since(job.wanted()).value_or(*first), now);
  const base::Instant began = std::clamp(*first, allocated, now);
  const base::Instant ended = std::clamp(runs ? now : last.value_or(now), began, now);
  return LifeBeforeReady{began, ended};
}

void tell_life_before_ready(const JobRecord& job, SchedulerDriver& scheduler, base::Instant now) {
  const auto life = life_before_ready(job, now, scheduler.ends_by_time());
  const auto view = life ? scheduler.view(job.id) : std::nullopt;
  if (!view || life->ran() <= view->run_time) return;
  scheduler.tell(sched::JobRan{job.id, life->ran() - view->run_time});
}

void note_life_before_ready(JobRecord& job, SchedulerDriver& scheduler, base::Instant now) {
  const auto life = life_before_ready(job, now, scheduler.ends_by_time());
  if (!life) return;
  job.wanted_unmarked().start_time = life->began;
  job.wanted_unmarked().run_time = kube::RunTime{life->ran(), life->ended};
  tell_life_before_ready(job, scheduler, now);
}

void RunTimes::observe_job(const JobRecord& job) {
  if (job.is_allocated() && job.wishes->submitted && !job.deleted) {
    const auto& stored = job.status.stored().run_time;
    allocated_.try_emplace(job.uid, stored && stored->as_of + kPeriod <= shown_at_);
  } else {
    allocated_.erase(job.uid);
  }
}

// The status of a job that is off, or that has not begun, stays as it is.
void RunTimes::refresh(JobBook& jobs, const SchedulerDriver& scheduler, base::Instant now,
                       const std::function<bool(const JobRecord&)>& is_listed) {
  if (next_due() > now) return;
  shown_at_ = now;
  for (auto& [uid, goes_on] : allocated_) {
    JobRecord* job = jobs.peek(uid);
    if (job == nullptr || !job->is_allocated()) continue;
    const kube::JobStatus& wanted = job->wanted();
    if (wanted.ending) continue;
    const auto view = scheduler.view(job->id);
    if (!view || !view->ready) continue;
    if (wanted.run_time && wanted.run_time->elapsed == view->run_time) continue;
    goes_on = is_known_to_readers(*job, *view, now) && !is_listed(*job);
    if (goes_on) continue;
    show_times_unmarked(*job, scheduler, now);
    jobs.mark(*job, WriteUrgency::kInforms);
  }
}

void RunTimes::before_timetable(JobRecord& job, JobBook& jobs, const SchedulerDriver& scheduler,
                                base::Instant now) {
  const auto found = allocated_.find(job.uid);
  if (found == allocated_.end() || !std::exchange(found->second, false)) return;
  // An end says the times.
  if (job.wanted().ending) return;
  show_times_unmarked(job, scheduler, now);
  jobs.mark(job, WriteUrgency::kCommit);
}

base::Instant RunTimes::next_due() const {
  return shown_at_ + kPeriod;
}

}  // namespace control
