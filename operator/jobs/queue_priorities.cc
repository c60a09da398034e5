#include "operator/jobs/queue_priorities.h"

#include <utility>

namespace control {

void show_priority_unmarked(JobRecord& job, const SchedulerDriver& scheduler) {
  const auto view = scheduler.view(job.id);
  if (!view) return;
  job.wanted_unmarked().priority = view->priority.value();
  if (!job.is_allocated() && view->eligible_time != base::Instant{}) {
    job.wanted_unmarked().eligible_time = view->eligible_time;
  }
}

void QueuePriorities::refresh(JobBook& jobs, const SchedulerDriver& scheduler) {
  if (scheduler.names().works_priorities_out()) return;
  const base::Instant period_began = scheduler.names().usage_as_of();
  // Priorities change with the periods of usage alone.
  if (std::exchange(period_began_, period_began) == period_began) return;
  // The head of the queue: a write for each of many thousand waiting jobs in each period would cost
  // more than it tells.
  for (const sched::JobId id : scheduler.names().head_of_queue(kJobsMax)) {
    JobRecord* const job = jobs.peek(id);
    if (job == nullptr) continue;
    const auto before = job->wanted().priority;
    show_priority_unmarked(*job, scheduler);
    if (job->wanted().priority != before) jobs.mark(*job, WriteUrgency::kInforms);
  }
}

}  // namespace control
