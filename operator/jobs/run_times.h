// Run times: what the scheduler knows of a job's times and shows in its status.
#pragma once

#include <set>
#include <string>

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/scheduler_driver.h"

namespace control {

// The wanted status says what the scheduler knows of the job's priority and times. Nothing is
// marked.
void show_times(JobRecord& job, const SchedulerDriver& scheduler, base::Instant now);

// Once a minute the run times of all jobs that run are shown.
class RunTimes {
 public:
  void restore(base::Instant now) { shown_at_ = now; }
  // Of each job that changed.
  void observe(const JobRecord& job);
  void forget(const std::string& job_uid) { allocated_.erase(job_uid); }
  // Marks the jobs that ran since. Cost: the jobs with an allocation, once a minute.
  void refresh(JobBook& jobs, const SchedulerDriver& scheduler, base::Instant now);
  base::Instant next_due() const;

 private:
  base::Instant shown_at_{};
  std::set<std::string> allocated_;  // UIDs
};

}  // namespace control
