// Run times: what the scheduler knows of a job's times and shows in its status.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/scheduler_driver.h"

namespace control {

// Writes what the scheduler knows of the job's priority and times to the wanted status.
void show_times_unmarked(JobRecord& job, const SchedulerDriver& scheduler, base::Instant now);

// For how long a job that is not ready has run: from its first container of any kind, init
// containers too, as Slurm counts from the launch, to the last, or to now if one runs. nullopt if
// none has run, or the job is ready. `is_trusted`: by a wall clock that can be trusted; else only
// pods that have ended count.
struct LifeBeforeReady {
  base::Instant began, ended;
  base::Duration ran() const { return ended - began; }
};
std::optional<LifeBeforeReady> life_before_ready(const JobRecord& job, base::Instant now,
                                                 bool is_trusted);
// Reports that time to the scheduler, which adds it to the run time for time limit and usage, as
// far as it was not reported before, by the leader before or at the last look.
void tell_life_before_ready(const JobRecord& job, SchedulerDriver& scheduler, base::Instant now);
// Does the same for a job that ends so; its wanted status says it too, and is not marked.
void note_life_before_ready(JobRecord& job, SchedulerDriver& scheduler, base::Instant now);

// Once a minute the run times of jobs that run are shown, but those of jobs that no timetable lists
// and that ran all the time since the stored instant: these every reader can work out, and a new
// leader, too. Before a timetable lists such a job, its run time is stored.
class RunTimes {
 public:
  void restore(base::Instant now) { shown_at_ = now; }
  // Called for each job that changed.
  void observe_job(const JobRecord& job);
  void drop_job(const std::string& job_uid) { allocated_.erase(job_uid); }
  // Marks the jobs that ran since. `is_listed`: by a published timetable. Cost: the jobs with an
  // allocation, once a minute.
  void refresh(JobBook& jobs, const SchedulerDriver& scheduler, base::Instant now,
               const std::function<bool(const JobRecord&)>& is_listed);
  // Call before a timetable that lists the job is written. Marks the job's run time, which that
  // timetable waits for then, unless it is about as new as the last refresh.
  void before_timetable(JobRecord& job, JobBook& jobs, const SchedulerDriver& scheduler,
                        base::Instant now);
  base::Instant next_due() const;

 private:
  base::Instant shown_at_{};
  // By UID: whether the stored run time is from before the last refresh, since the job goes on.
  std::map<std::string, bool> allocated_;
};

}  // namespace control
