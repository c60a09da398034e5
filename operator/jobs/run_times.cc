#include "operator/jobs/run_times.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "operator/jobs/status_after.h"

namespace control {
namespace {

constexpr base::Duration kPeriod = std::chrono::minutes{1};

}  // namespace

void show_times(JobRecord& job, const SchedulerDriver& scheduler, base::Instant now) {
  const auto view = scheduler.view(job.id);
  if (!view) return;
  kube::JobStatus& wanted = job.wanted();
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
std::optional<LifeBeforeReady> life_before_ready(const JobRecord& job, base::Instant now) {
  if (kube::is_true(job.wanted().conditions, kube::kReady)) return std::nullopt;
  std::optional<base::Instant> first, last;
  bool runs = false;
  for (const SlotPod& one : job.start.slot_pods) {
    if (one.first_started) first = std::min(first.value_or(*one.first_started), *one.first_started);
    last = std::max(last, one.last_finished);
    runs = runs || one.runs;
  }
  if (!first) return std::nullopt;
  const base::Instant allocated = std::min(starting_since(job.wanted()).value_or(*first), now);
  const base::Instant began = std::clamp(*first, allocated, now);
  const base::Instant ended = std::clamp(runs ? now : last.value_or(now), began, now);
  return LifeBeforeReady{began, ended};
}

void tell_life_before_ready(const JobRecord& job, SchedulerDriver& scheduler, base::Instant now) {
  // A clock that cannot be trusted may be hours off.
  if (!scheduler.ends_by_time()) return;
  const auto life = life_before_ready(job, now);
  const auto view = life ? scheduler.view(job.id) : std::nullopt;
  if (!view || life->ran() <= view->run_time) return;
  scheduler.tell(sched::JobRan{job.id, life->ran() - view->run_time});
}

void note_life_before_ready(JobRecord& job, SchedulerDriver& scheduler, base::Instant now) {
  if (!scheduler.ends_by_time()) return;
  const auto life = life_before_ready(job, now);
  if (!life) return;
  job.wanted().start_time = life->began;
  job.wanted().run_time = kube::RunTime{life->ran(), life->ended};
  tell_life_before_ready(job, scheduler, now);
}

void RunTimes::observe(const JobRecord& job) {
  if (job.is_allocated() && job.submitted && !job.deleted) {
    allocated_.insert(job.uid);
  } else {
    allocated_.erase(job.uid);
  }
}

// Once a minute, and only for jobs whose run time has moved: the status of a job that is off, or
// that has not begun, stays as it is.
void RunTimes::refresh(JobBook& jobs, const SchedulerDriver& scheduler, base::Instant now) {
  if (next_due() > now) return;
  shown_at_ = now;
  for (const std::string& uid : allocated_) {
    JobRecord* job = jobs.peek(uid);
    if (job == nullptr || !job->is_allocated()) continue;
    const kube::JobStatus& wanted = std::as_const(*job).wanted();
    if (wanted.ending) continue;
    const auto view = scheduler.view(job->id);
    if (!view || !view->ready) continue;
    if (wanted.run_time && wanted.run_time->elapsed == view->run_time) continue;
    show_times(*job, scheduler, now);
    jobs.mark(*job, WriteUrgency::kInforms);
  }
}

base::Instant RunTimes::next_due() const {
  return shown_at_ + kPeriod;
}

}  // namespace control
