#include "operator/jobs/run_times.h"

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
  // With the instant it is of, so that a reader can add what has passed since while the job runs.
  wanted.run_time = kube::RunTime{view->run_time, now};
  wanted.suspend_time = kube::RunTime{view->suspend_time, now};
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
    if (job == nullptr || !job->is_allocated() || job->wanted().ending) continue;
    const auto view = scheduler.view(job->id);
    if (!view || !view->ready) continue;
    const auto& shown = job->wanted().run_time;
    if (shown && shown->elapsed == view->run_time) continue;
    show_times(*job, scheduler, now);
    jobs.mark(*job, WriteUrgency::kInforms);
  }
}

base::Instant RunTimes::next_due() const {
  return shown_at_ + kPeriod;
}

}  // namespace control
