// GangRunner: what the pods of a start say together becomes events of the scheduler: the gang is
// ready, has ended, has failed, could not be launched; and what that needs of the pods is asked
// for.
#pragma once

#include <string>

#include "operator/gang/gang_observation.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/pod_writes.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/publish/timetable_publisher.h"

namespace control {

// Belongs to the loop's thread. Has no state but what it notes in a JobRecord: GangNotes, and what
// its wanted status says of its start.
class GangRunner {
 public:
  GangRunner(const JobParts& parts, SchedulerDriver& scheduler, TimetablePublisher& timetables,
             PodWrites& pods)
      : parts_{parts}, scheduler_{scheduler}, timetables_{timetables}, pods_{pods} {}

  // REQUIRES: the job is allocated, and no commit point of it is outstanding. Cost: its pods.
  void run(JobRecord& job);
  // Takes the pods and nodes of the job's present start, from the allocation that is to be stored.
  void take_slots(JobRecord& job);
  // The scheduler ends it for a reason of its own, whatever was under way.
  void end_otherwise(JobRecord& job);
  // Notes the ending of a job that a new leader has found.
  void restore_ending(JobRecord& job, const kube::JobEnding& ending);
  // Removes all of the start: its pods go first, then the scheduler hears of it.
  void undo_start(JobRecord& job, StartUndo undo);

 private:
  void run_ending(JobRecord& job);
  void tell_clean_nodes(JobRecord& job);
  void run_started(JobRecord& job);
  void run_members(JobRecord& job, const GangObservation& seen);
  void fill_places(JobRecord& job);
  base::Instant turn_for_next_pod(const JobRecord& job) const;
  void leave_cordoned_nodes(JobRecord& job);
  void note_successes(JobRecord& job) const;
  void become_ready_when_settled(JobRecord& job, const GangObservation& seen);
  void complete(JobRecord& job);
  void lose_member(JobRecord& job, int slot);
  void run_adopted(JobRecord& job);
  void end_adopted(JobRecord& job, const GangObservation& seen);
  bool is_out_of_time(JobRecord& job);
  void launch(JobRecord& job, const std::vector<int>& missing);
  void list_in_timetables(JobRecord& job);
  void show_what_it_waits_for(JobRecord& job, const GangObservation& seen);
  GangObservation look_at_pods(JobRecord& job);
  void leave_rotation(JobRecord& job, const std::string& why);
  void become_ready(JobRecord& job);
  // Ends the job by itself while other pods of it may still be there: they are torn down.
  void end_by_itself(JobRecord& job, const GangEnd& end);
  void show_ending(JobRecord& job, const kube::JobEnding& ending, const std::string& message);
  void end_or_requeue(JobRecord& job, const GangEnd& end);
  void complete_early(JobRecord& job, const EarlySuccess& success);
  void finish_undo(JobRecord& job);
  bool may_requeue(const JobRecord& job) const;

  const JobParts parts_;
  SchedulerDriver& scheduler_;
  TimetablePublisher& timetables_;
  PodWrites& pods_;
};

}  // namespace control
