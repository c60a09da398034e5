// Run times: what the scheduler knows of a job's times and shows in its status.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/scheduler_driver.h"

namespace control {

// Writes what the scheduler knows of the job's priority and times to the wanted status. Nothing is
// marked.
void show_times(JobRecord& job, const SchedulerDriver& scheduler, base::Instant now);

// For how long a job that is not ready has run: from its first container of any kind, init
// containers too, as Slurm counts from the launch, to the last, or to now if one runs. nullopt if
// none has run, or the job is ready.
struct LifeBeforeReady {
  base::Instant began, ended;
  base::Duration ran() const { return ended - began; }
};
std::optional<LifeBeforeReady> life_before_ready(const JobRecord& job, base::Instant now);
// Reports that time to the scheduler, which adds it to the run time for time limit and usage, as
// far as it was not reported before, by the leader before or at the last look.
void tell_life_before_ready(const JobRecord& job, SchedulerDriver& scheduler, base::Instant now);
// Does the same for a job that ends so; its wanted status says it too.
void note_life_before_ready(JobRecord& job, SchedulerDriver& scheduler, base::Instant now);

// Once a minute the run times of all jobs that run are shown.
class RunTimes {
 public:
  void restore(base::Instant now) { shown_at_ = now; }
  // Called for each job that changed.
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
