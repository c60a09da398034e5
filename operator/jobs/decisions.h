// Decisions: what each decision of the scheduler means for the job: its wanted status
// (status_after.h), the pods and nodes of its start, and what is told of it.
#pragma once

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/wishes.h"
#include "operator/loop/counters.h"
#include "operator/loop/report.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/nodes/node_book.h"
#include "operator/policy/policy_book.h"
#include "operator/publish/timetable_publisher.h"

namespace control {

// Belongs to the loop's thread. Has no state but what it notes in a JobRecord: its wanted status
// and its start.
class Decisions {
 public:
  struct Parts {
    const base::Instant& now;  // of the present step
    JobBook& jobs;
    NodeBook& nodes;
    TimetablePublisher& timetables;
    const PolicyBook& policy;
    SchedulerDriver& scheduler;
    Wishes& wishes;
    const Report& report;
    LoopCounters& counters;
  };
  explicit Decisions(const Parts& parts)
      : now_{parts.now},
        jobs_{parts.jobs},
        nodes_{parts.nodes},
        timetables_{parts.timetables},
        policy_{parts.policy},
        scheduler_{parts.scheduler},
        wishes_{parts.wishes},
        report_{parts.report},
        counters_{parts.counters} {}

  // A job that is not known any more is left.
  void apply(const sched::Decision& decision);
  // The pods and nodes of the job's present start, from the allocation that is to be stored.
  void take_slots(JobRecord& job);

 private:
  void on(const sched::Start& start, JobRecord& job);
  void on(const sched::Suspend& suspend, JobRecord& job);
  void on(const sched::Resume& resume, JobRecord& job);
  void on(const sched::End& end, JobRecord& job);
  void on(const sched::Claim& claim, JobRecord& job);
  void on(const sched::StateChange& change, JobRecord& job);
  void on(const sched::Waits& waits, JobRecord& job);
  void on(const sched::SubmitRefused& refused, JobRecord& job);
  void on(const sched::CommandRefused& refused, JobRecord& job);
  DecisionContext decision_context(const JobRecord& job) const;
  void take(JobRecord& job, StatusAfter after);
  void leave_nodes(JobRecord& job);

  const base::Instant& now_;
  JobBook& jobs_;
  NodeBook& nodes_;
  TimetablePublisher& timetables_;
  const PolicyBook& policy_;
  SchedulerDriver& scheduler_;
  Wishes& wishes_;
  const Report& report_;
  LoopCounters& counters_;
};

}  // namespace control
