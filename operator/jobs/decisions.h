// Decisions: what each decision of the scheduler means for the job: its wanted status
// (status_after.h), the pods and nodes of its start, and its events.
#pragma once

#include "operator/jobs/gang_runner.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/job_totals.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/wishes.h"
#include "operator/loop/counters.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/publish/status_publisher.h"
#include "operator/publish/timetable_publisher.h"

namespace control {

// Belongs to the loop's thread. Has no state but what it notes in a JobRecord. What follows for
// pods, wishes and the order of writes it leaves to their owners.
class Decisions {
 public:
  Decisions(const JobParts& parts, SchedulerDriver& scheduler, TimetablePublisher& timetables,
            StatusPublisher& statuses, Wishes& wishes, GangRunner& gangs, LoopCounters& counters,
            JobTotals& totals)
      : parts_{parts},
        scheduler_{scheduler},
        timetables_{timetables},
        statuses_{statuses},
        wishes_{wishes},
        gangs_{gangs},
        counters_{counters},
        totals_{totals} {}

  // A job that is no longer known is left out.
  void apply(const sched::Decision& decision);

 private:
  JobRecord* find(sched::JobId id);
  void on(const sched::Start& start, JobRecord& job);
  void on(const sched::Suspend& suspend, JobRecord& job);
  void on(const sched::Resume& resume, JobRecord& job);
  void on(const sched::End& end, JobRecord& job);
  void on(const sched::LimitChanged& change, JobRecord& job);
  void on(const sched::Claim& claim, JobRecord& job);
  void on(const sched::StateChange& change, JobRecord& job);
  void on(const sched::Waits& waits, JobRecord& job);
  void on(const sched::Planned& planned, JobRecord& job);
  void on(const sched::TermsChanged& change, JobRecord& job);
  void on(const sched::SubmitRefused& refused, JobRecord& job);
  void on(const sched::CommandRefused& refused, JobRecord& job);
  DecisionContext decision_context(const JobRecord& job) const;
  std::string account_of(const JobRecord& job) const;
  void leave_nodes(JobRecord& job);
  void hold_array(JobRecord& array, const std::string& reason);
  void count_estimate(const JobRecord& job);

  const JobParts parts_;
  SchedulerDriver& scheduler_;
  TimetablePublisher& timetables_;
  StatusPublisher& statuses_;
  Wishes& wishes_;
  GangRunner& gangs_;
  LoopCounters& counters_;
  JobTotals& totals_;
};

}  // namespace control
