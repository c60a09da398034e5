// Wishes: turns the wishes of users into events of the scheduler: submission, changes of the
// spec, holds, suspension, canceling, requeues. The condition Accepted reports wishes that are
// refused.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/jobs/job_numbers.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/pod_trials.h"
#include "operator/jobs/predecessors.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/nodes/node_classes.h"
#include "operator/publish/status_publisher.h"
#include "operator/write/effect.h"
#include "translation/job_translation.h"

namespace control {

// Belongs to the loop's thread. Has no state but what it notes in a JobRecord: WishNotes,
// ArrayWishes.
class Wishes {
 public:
  Wishes(const JobParts& parts, SchedulerDriver& scheduler, JobNumbers& numbers, PodTrials& trials,
         StatusPublisher& statuses)
      : parts_{parts},
        scheduler_{scheduler},
        numbers_{numbers},
        trials_{trials},
        statuses_{statuses} {}

  // Tells the scheduler what changed. A job that is not legal, or has no number yet, is not
  // submitted; one that is not legal ends here if it is canceled. REQUIRES: the job has not ended.
  // Cost: the number of nodes, if it is judged and is the first of its class (NodeClasses).
  void heed(JobRecord& job);
  // Nothing can be asked of a job that has ended; what cannot be taken back is said all the same.
  void heed_finished(JobRecord& job);
  // Cancels it, once, whatever its spec says: its object is gone.
  void cancel(JobRecord& job);
  // Takes it from the scheduler: it has ended, or is gone.
  void forget(JobRecord& job);
  // The scheduler does not take it.
  void submit_refused(JobRecord& job, const std::string& message);
  // The API server's word on its pods, as tried while it waited, counts no more: they will tell.
  void forget_warning(JobRecord& job);
  // A hold of a task that was sent while it ran had no effect. It waits now, and is sent it again.
  void tell_hold_again(JobRecord& array, int task);
  // Other capacities or policies: all jobs that wait are judged again, and those that run when they
  // are requeued. Cost: all jobs.
  void judge_waiting();
  // Does the same for the jobs whose request has one of these lists of nodes.
  void judge_classes(const std::set<NodeClasses::Names>& outdated);
  void answered(PodTried&& outcome);

  // --- for a new leader ---
  // Makes the records of tasks that wait and that are held by themselves, or whose terms differ
  // from those of the rest, and returns them. Their differences count as sent, and so do those of
  // tasks that have records. For more tasks than may have begun they are sent later: each record
  // costs as much as a job.
  std::vector<JobRecord*> restore_tasks(JobRecord& array);
  // Notes the tasks of an array, of the request that the scheduler gets.
  void restore_all(JobRecord& array, const sched::TaskSet& all);
  // Notes what the scheduler gets of a job: later wishes are compared with that.
  void restore(JobRecord& job, std::shared_ptr<const sched::JobRequest> request, bool is_suspended);

 private:
  void refuse(JobRecord& job, const std::vector<std::string>& problems);
  void show_accepted(JobRecord& job);
  void judge_later(JobRecord& job);
  void heed_task(JobRecord& task);
  void take_request_of_array(JobRecord& task);
  void give_number(JobRecord& task);
  void tell_tasks(JobRecord& array);
  void tell_terms(JobRecord& array);
  void judge(JobRecord& job);
  void go_on_illegally(JobRecord& job, const JobVerdict& verdict);
  bool take_allowed(JobRecord& job);
  void tell_update(JobRecord& job, sched::JobRequest request,
                   const std::vector<sched::KnownJob>& known);
  std::vector<std::string> problems_of_change(const JobRecord& job, const JobVerdict& verdict,
                                              const Predecessors& predecessors) const;
  void show_terms(JobRecord& job, const sched::Dependency& dependency);
  void share_request(JobRecord& job);
  void submit(JobRecord& job, sched::JobRequest request, std::vector<sched::KnownJob> known);
  void end_refused(JobRecord& job);
  bool show_refused(JobRecord& job, const std::string& reason, const std::string& message);
  void refuse_change(JobRecord& job, const std::vector<std::string>& problems,
                     std::string_view what_follows = "; the job goes on without this");
  void hold_rest(JobRecord& array, const std::vector<std::string>& problems);
  void release_all(JobRecord& job);
  void tell_tasks_again(JobRecord& job);
  void show_partitions(JobRecord& job);
  // Everything in the spec that is a command rather than a property. REQUIRES: it is submitted.
  void tell_commands(JobRecord& job);
  void tell_requests(JobRecord& job, std::int64_t requeue, std::int64_t release);
  void tell_suspension(JobRecord& job);
  bool suspension_waits(JobRecord& job);
  void suspension_waits_no_more(JobRecord& job);

  const JobParts parts_;
  SchedulerDriver& scheduler_;
  JobNumbers& numbers_;
  PodTrials& trials_;
  StatusPublisher& statuses_;
};

}  // namespace control
