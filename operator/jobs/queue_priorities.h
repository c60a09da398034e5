// Queue priorities: the priorities of jobs that wait, as their statuses show them.
#pragma once

#include <cstddef>

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/scheduler_driver.h"

namespace control {

// Writes the priority of the job to its wanted status, and for a job that waits since when it is
// eligible, from which its age counts.
void show_priority_unmarked(JobRecord& job, const SchedulerDriver& scheduler);

// Under PriorityType multifactor priorities change at the end of each period. Then the jobs at the
// head of the queue show their new ones, within the budget of writes that only inform. The others
// show what they had when their status was last written.
class QueuePriorities {
 public:
  // Each job is written at most once a minute, so these take 8 of the 20 writes per second.
  static constexpr std::size_t kJobsMax = 500;

  // Marks jobs whose priority changed. Cost: kJobsMax jobs once in a period, otherwise O(1).
  void refresh(JobBook& jobs, const SchedulerDriver& scheduler);

 private:
  base::Instant period_began_{};
};

}  // namespace control
