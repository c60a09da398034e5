// GangRunner: what the pods of a start say together becomes events of the scheduler: the gang is
// ready, has ended, has failed, could not be launched; and what that needs of the pods is asked
// for.
#pragma once

#include <string>

#include "base/time.h"
#include "operator/gang/gang_observation.h"
#include "operator/jobs/job_book.h"
#include "operator/jobs/pod_writes.h"
#include "operator/loop/report.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/nodes/node_book.h"
#include "operator/policy/policy_book.h"
#include "operator/publish/timetable_publisher.h"

namespace control {

// Belongs to the loop's thread. Has no state but what it notes in a JobRecord: its start and what
// its wanted status says of it.
class GangRunner {
 public:
  struct Parts {
    const base::Instant& now;  // of the present step
    JobBook& jobs;
    const NodeBook& nodes;
    TimetablePublisher& timetables;
    const PolicyBook& policy;
    SchedulerDriver& scheduler;
    PodWrites& pods;
    const Report& report;
  };
  explicit GangRunner(const Parts& parts)
      : now_{parts.now},
        jobs_{parts.jobs},
        nodes_{parts.nodes},
        timetables_{parts.timetables},
        policy_{parts.policy},
        scheduler_{parts.scheduler},
        pods_{parts.pods},
        report_{parts.report} {}

  // REQUIRES: the job is allocated, and no commit point of it is outstanding. Cost: its pods.
  void run(JobRecord& job);
  // Nothing of the start is to stay: its pods go first, then the scheduler hears of it.
  void undo_start(JobRecord& job, StartUndo undo);

 private:
  void run_ending(JobRecord& job);
  void run_started(JobRecord& job);
  GangObservation look_at_pods(JobRecord& job);
  void leave_rotation(JobRecord& job, const std::string& why);
  void become_ready(JobRecord& job);
  // The job's own end while other pods of it may still be there: they are torn down.
  void end_by_itself(JobRecord& job, const GangFailure& failure);
  void finish_undo(JobRecord& job);
  bool may_requeue(const JobRecord& job) const;

  const base::Instant& now_;
  JobBook& jobs_;
  const NodeBook& nodes_;
  TimetablePublisher& timetables_;
  const PolicyBook& policy_;
  SchedulerDriver& scheduler_;
  PodWrites& pods_;
  const Report& report_;
};

}  // namespace control
