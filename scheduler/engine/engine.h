// Engine: the life cycle of jobs (chapter 2), behind the class Scheduler. It takes one event at a
// time, asks the parts that know (admission, the pass, the gang, limits) and writes what follows
// into JobBooks.
//
// Files: cluster_events.cc (nodes, configuration), user_events.cc (submit, hold, cancel, …),
// arrays.cc (tasks of arrays, 13.4), copy.cc (for a forecast),
// start.cc (T2, preemption), end.cc (T5 to T7), time.cc (wakes, passes, time limits), restore.cc (a
// new leader).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/backfill/backfill_pass.h"
#include "scheduler/backfill/backfill_schedule.h"
#include "scheduler/backfill/start_estimates.h"
#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/limits/resource_limits.h"
#include "scheduler/limits/time_limits.h"
#include "scheduler/model/cluster.h"
#include "scheduler/pass/main_pass.h"
#include "scheduler/pass/pass_schedule.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/priority/priorities.h"
#include "scheduler/queue/admission.h"
#include "scheduler/queue/dependencies.h"
#include "scheduler/queue/job_queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/state_copy.h"

namespace sched {

class Engine : private PassActions, private gang::TurnEvents {
 public:
  explicit Engine(const Options& options);
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  virtual void step(base::Instant now, const Event& event);
  bool works_priorities_out() const { return admission_.works_priorities_out(); }
  std::vector<Decision> take_decisions() { return books_.take_decisions(); }
  std::optional<std::string> refused_dependency(const JobRequest& request) const {
    return dependencies_.refused(request);
  }
  std::optional<JobView> view(JobId id, base::Instant now);
  std::vector<JobId> jobs() const;
  std::vector<JobId> head_of_queue(std::size_t jobs_max) const;
  virtual std::optional<base::Instant> next_due();
  void rest_at_least(base::Duration rest) { backfill_schedule_.rest_at_least(rest); }
  std::vector<NodePlan> take_plans(base::Instant now) { return turns_->take_plans(now); }
  std::vector<JobRun> take_runs() { return turns_->take_runs(); }
  std::vector<JobRun> open_runs() { return turns_->open_runs(); }
  base::Instant when_has_run(JobId id, base::Duration work, base::Instant until);
  const Cluster& cluster() const { return cluster_; }
  UsageState usage() const { return priorities_.save_usage(); }
  std::vector<JobCharged> take_charged_ends() { return priorities_.take_charged_ends(); }
  base::Instant usage_as_of() const { return priorities_.usage().period_began(); }
  void restore_usage(const UsageState& state, const std::vector<EndedJob>& ended);
  std::vector<ShareView> shares() { return priorities_.shares(); }
  std::vector<PriorityView> priorities_of(JobId id, base::Instant now);
  std::int64_t backfilled_starts() const { return backfill_.starts(); }
  const Licenses& licenses_in_use() const { return resource_limits_.licenses().in_use(); }
  PartitionIndex known_partition(const std::string& name) { return cluster_.known_partition(name); }
  StateCopy copy(base::Instant now);
  // Empty, or what is inconsistent; for tests. Cost: O(everything).
  std::string check_invariants();
  void restore_from_published(base::Instant now, std::vector<JobFacts> jobs,
                              std::vector<NodePlan> published, const std::vector<KnownJob>& known);

 protected:  // a replay of a recording is an Engine, too (replay/replay.h)
  using MakeTurns = std::function<std::unique_ptr<gang::Turns>(
      const Cluster& cluster, JobBooks& books, TurnEvents& events)>;
  // `wakes`: deadlines end waiting jobs at their instants; otherwise in the next pass.
  Engine(const Options& options, const MakeTurns& make_turns, bool wakes);

  std::string check_job(const Job& job) const;
  std::string check_node(NodeIndex node) const;

  // --- restore ---
  void restore_job(JobFacts facts);
  void restore_ending(Job& job);
  void restore_clock(Job& job, const std::map<NodeIndex, const NodePlan*>& plans);

  // --- events (one function per event) ---
  void on(const Configure& event);
  void on(const NodeUpdate& event);
  void on(const NodeRemove& event);
  void on(const Submit& event);
  void on(const Update& event);
  std::optional<std::string> refused_at_update(const Job& job, const JobRequest& request) const;
  void update(Job& job, const Update& event);
  void change_priority(Job& job, const JobRequest& before, const JobRequest& now);
  void on(const Hold& event);
  virtual void hold(Job& job, bool by_admin, bool with_array);
  void on(const Release& event);
  virtual void release(Job& job);
  virtual void end_holds(Job& job);
  void change_limit(Job& job);
  void on(const UserSuspend& event);
  virtual void suspend(Job& job);
  void on(const UserResume& event);
  virtual void resume(Job& job);
  void go_on(Job& job);
  void on(const Cancel& event);
  void cancel(Job& job);
  void on(const Requeue& event);
  void requeue(Job& job);
  void on(const Forget& event);
  void forget(Job& job);
  void on(const JobReady& event);
  void on(const JobRan& event);
  void on(const JobEnding& event);
  void on(const NodesClean& event);
  virtual void on(const JobGone& event);
  void on(const StartRefused& event);
  void on(const Wake& event);
  virtual void on(const SliceEnd& event);
  virtual void on(const Pass& event);
  void on(const TimeLimitReached& event);

  // --- arrays ---
  // The job of that id, null if there is none. A task that waits as its array does becomes a job of
  // its own.
  Job* find(JobId id);
  Job& split_off(Job& array, int task);
  // Calls act(job) for the job of that id, if there is one that is not over. For an array: for what
  // waits as the array, if anything does, and then for each task that is a job of its own.
  void each_job(JobId id, const std::function<void(Job&)>& act);
  // Reopens the array for another task, since `task` has left its nodes.
  void reopen(Job& array, const Job* task = nullptr);
  void forget_ended_tasks();

  // --- configuration ---
  // Takes a series of changed nodes in. Cost: what depends on these nodes; O(everything) if the
  // topology changed.
  void settle();
  // Rebuilds node groups, books and queue from the cluster and the job table.
  void rebuild();
  void forget_plans();
  // Removes the nodes of NodeRemove events that have no jobs any longer.
  void remove_empty_nodes();
  // REQUIRES: no job has it.
  void remove_node(NodeIndex node);

  void set_reason(Job& job, Reason reason, std::string message = {}) {
    books_.set_reason(job, reason, std::move(message));
  }

  // --- PassActions ---
  Job& start(Job& waiting, PartitionIndex partition, Fits fits) override;
  void preempt_for(Job& preemptor, NeedsVictims needs) override;

  // --- TurnEvents ---
  void must_end(Job& victim, std::optional<JobId> preemptor) override;
  void times_changed(Job& job) override { limits_.advance(job, now_); }
  void resumed(Job& job) override;

  // --- the life cycle, in its order ---
  void begun(Job& job);  // the books' listener: a job has its allocation
  // Carries out a decided start; JobReady will tell when the job runs.
  virtual void started(Job& /*job*/) {}
  void become_ready(Job& job);
  // The nodes come free by `until` at the latest.
  virtual void keep_nodes(Job& preemptor, Allocation nodes, base::Instant until);
  void preempt(Job& victim, PreemptMode mode, std::optional<JobId> preemptor);
  virtual base::Duration grace_time(const Job& victim) const;
  // Decides the ending and begins its grace time, unless there is one already.
  void begin_ending(Job& job, Ending ending);
  // Does the same instead of the ending that there may be.
  void decide_ending(Job& job, Ending ending);
  // The job's processes or its node ended it, not the scheduler.
  void end_by_itself(Job& job, JobState verdict, int exit_code);
  // The grace time is over: its cores are released and its nodes are completing.
  void kill(Job& job);
  // All its pods are gone.
  void gone(Job& job);
  void end_allocation(Job& job, JobState next);
  void about_to_end(Job& job);  // the books' listener: a job is losing its allocation
  void to_pending(Job& job);
  // Returns when a job that is requeued now may start.
  virtual base::Instant not_before_again() const;
  bool may_requeue(const Job& job) const;
  static void hold_as_asked(Job& job);
  // Takes the holds back. A job that is no longer held gets a new priority, and its age counts from
  // now on (R9.3). The job is in no queue. Returns whether that hold was set.
  bool take_back(Job& job, std::initializer_list<HoldBy> holds);
  void stop_waiting_for_room(Job& job);
  // Jobs whose dependencies the event has changed wait in other queues now, or are canceled.
  void settle_dependencies();

  // --- time ---
  void fire_timers();
  void retry_resumes();
  // Ends a period of the priorities.
  void end_period(base::Instant at);
  void begin_priorities(bool changed, std::function<bool(Job&)> set);
  void step_priorities();
  void finish_priorities();
  bool passes_read_priorities() const;
  base::Instant passes_wait_until() const;
  // nullopt = there is no job whose priority or usage it would change.
  std::optional<base::Instant> period_due() const;
  void time_out(Job& job, EndingVerdict verdict);

  const std::size_t priorities_per_step_;
  base::Instant now_{base::Instant::min()};
  Cluster cluster_;
  NodeGroups groups_{cluster_};
  std::uint64_t topology_version_ = 0;  // that groups_ and the books were built for
  JobBooks books_;
  const std::unique_ptr<gang::Turns> turns_;
  TimeLimits limits_;
  Priorities priorities_;
  ResourceLimits resource_limits_;
  Admission admission_;
  Dependencies dependencies_{books_, now_};
  MainPass pass_;
  PassSchedule pass_schedule_;
  BackfillPass backfill_;
  StartEstimates estimates_;  // with sched/builtin, instead
  BackfillSchedule backfill_schedule_;

  bool priorities_changed_ = false;  // while new ones are worked out: one of them is another one
  std::set<std::pair<base::Instant, JobId>> grace_timers_;
  std::set<JobId> waiting_resumes_;      // their users resumed them; no row is free yet (claims)
  std::uint64_t resumes_version_ = 0;    // when they were last tried
  std::set<std::string> removed_nodes_;  // that still have jobs
};

}  // namespace sched
