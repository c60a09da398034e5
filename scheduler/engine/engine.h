// Engine: what is behind the class Scheduler: the job life cycle (chapter 2), the queue and the
// passes (chapter 3), starts and endings, preemption (7.7, 7.8), and the gang's place in all of it.
//
// Files: configure.cc (administrator), jobs.cc (users), pass.cc (3.2 to 3.4), start.cc (T2), end.cc
// (T5 to T7), gang.cc, time.cc (own timing), restore.cc (from what was published).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/gang/components.h"
#include "scheduler/gang/world.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/model/cluster.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/place/placement.h"
#include "scheduler/projection/node_plans.h"
#include "scheduler/queue/job_queue.h"
#include "scheduler/scheduler.h"

namespace sched {

class Engine {
 public:
  explicit Engine(Options options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void step(base::Instant now, const Event& event);
  std::vector<Decision> take_decisions() { return books_.take_decisions(); }
  std::optional<JobView> view(JobId id, base::Instant now);
  std::vector<JobId> jobs() const;
  std::optional<base::Instant> next_due();
  std::vector<NodePlan> take_plans(base::Instant now);
  std::vector<JobRun> take_runs() { return std::exchange(runs_, {}); }
  std::vector<JobRun> open_runs();
  base::Instant when_has_run(JobId id, base::Duration work, base::Instant until);
  const Cluster& cluster() const { return cluster_; }
  PartitionIndex known_partition(const std::string& name) { return cluster_.known_partition(name); }
  // Empty, or what is inconsistent; for tests. Cost: O(everything).
  std::string check_invariants();
  void restore_from_published(base::Instant now, std::vector<RestoredJob> jobs,
                              std::vector<NodePlan> published);

 private:
  std::string check_job(const Job& job) const;
  std::string check_node(NodeIndex node) const;

  // --- restore ---
  void restore_job(const RestoredJob& from);
  void restore_ending(Job& job, const RestoredJob& from);
  void restore_clock(Job& job, const std::map<JobId, const NodePlan*>& plan_of);
  void restore_rotation(const std::vector<NodePlan>& published);

  // --- events (one function per event) ---
  void on(const Configure& event);
  void on(const NodeUpdate& event);
  void on(const NodeRemove& event);
  void on(const Submit& event);
  void on(const Update& event);
  void on(const Hold& event);
  void on(const Release& event);
  void on(const UserSuspend& event);
  void on(const UserResume& event);
  void on(const Cancel& event);
  void on(const Requeue& event);
  void on(const Forget& event);
  void on(const JobReady& event);
  void on(const JobRan& event);
  void on(const JobEnding& event);
  void on(const JobGone& event);
  void on(const StartRefused& event);
  void on(const Wake& event);
  void on(const SliceEnd& event);
  void on(const Pass& event);
  void on(const TimeLimitReached& event);

  // --- configuration ---
  void remove_empty_nodes();
  void settle();   // after a change of nodes or configuration: node groups, and books when needed
  void rebuild();  // books and queue anew from the job table
  void release_bad_constraints();

  // --- queue ---
  void enqueue(Job& job);  // evaluates 3.2 steps 3 to 6; sets the reason when it may not queue
  void dequeue(Job& job);
  void requeue_all_pending();
  struct Refusal {
    Reason reason;
    std::string message;
  };
  std::optional<Refusal> refused_by_partition(const JobRequest& request,
                                              PartitionIndex partition) const;
  std::optional<Refusal> refused_by_limits(const JobRequest& request, PartitionIndex partition,
                                           const QosConfig* qos) const;
  std::string held_message(const Job& job) const;
  QueueRecord record_of(Job& job, PartitionIndex partition) const;
  std::vector<PartitionIndex> partitions_of(const JobRequest& request) const;
  Priority next_priority(const JobRequest& request);
  void set_reason(Job& job, Reason reason, std::string message = {}) {
    books_.set_reason(job, reason, std::move(message));
  }

  // --- pass ---
  struct PassState;
  // Whether another pass may start more: a job that another one was behind started elsewhere.
  bool main_pass(std::optional<int> depth);
  bool try_record(PassState& pass, const QueueRecord& record);
  void fail_partition(PassState& pass, const Job& job, PartitionIndex partition);
  void skip_for_priority(Job& job);
  void note_unexplained(JobId id);
  void sort_unexplained();
  void skip_the_rest(const PassState& pass);
  void place(PassState& pass, Job& job, PartitionIndex partition);
  void expire_claims();
  static std::optional<base::Instant> latest_start(const Job& job);
  // Whether it has ended for that; its records are still in the queue then.
  bool deadline_passed(Job& job);
  void note_claim(PassState& pass, const Job& job) const;
  struct QosUse {
    int cpus = 0;
    int user_jobs = 0;
    int user_cpus = 0;
  };
  QosUse use_of(const QosConfig& qos, const std::string& user) const;
  std::string over_qos_limit(const Job& job, PartitionIndex partition, int cpus) const;
  std::string denied_by_qos(const JobRequest& request, PartitionIndex partition) const;
  bool refused_at_submit(const JobRequest& request, std::string& message) const;

  // --- start and end ---
  void start(Job& job, PartitionIndex partition, Allocation allocation, SharingStatus sharing);
  void undo_start(Job& job);
  void become_ready(Job& job);
  void preempt_victims(Job& preemptor, const PlacementOutcome& outcome);
  void preempt(Job& victim, PreemptMode mode, std::optional<JobId> preemptor);
  void begin_ending(Job& job, Ending ending);
  void kill(Job& job);  // grace over: cores are released, nodes are completing
  void gone(Job& job);
  void end_by_itself(Job& job, JobState verdict, int exit_code);
  void to_pending(Job& job);
  void begun(Job& job);         // listener of the books
  void about_to_end(Job& job);  // likewise
  bool may_requeue(const Job& job) const;
  static void hold_if_suspended(Job& job);
  std::optional<base::Duration> time_limit_of(const Job& job, PartitionIndex partition) const;

  // --- gang ---
  bool gang_on() const { return cluster_.parameters().gang; }
  // Jobs of a removed partition run on outside the gang. REQUIRES: job.partition.
  bool takes_turns(const Job& job) const { return gang_on() && cluster_.exists(*job.partition); }
  gang::Newcomer newcomer(const Job& job) const;
  void gang_start(Job& job);
  void gang_gone(Job& job);
  void mark_nodes(const Job& job);
  void gang_rebuild();  // 6.10
  void rebuild_components();
  void apply_gang_actions();

  // --- own timing ---
  void fire_timers();
  void after_gang();
  bool pass_due() const;
  bool has_main_loop() const;
  base::Duration full_pass_interval() const;
  base::Instant full_pass_at() const;
  base::Duration run_time(const Job& job, base::Instant t) const;
  base::Duration suspend_time(const Job& job, base::Instant t) const;
  void settle_clock(Job& job);
  void to_phase(Job& job, JobClock::Phase phase);
  void record_run(const Job& job, base::Instant until, std::vector<JobRun>& runs) const;
  void arm_time_limit(Job& job);
  void advance_time_limit(Job& job);
  void disarm_time_limit(Job& job);
  void check_time_limits();
  void retry_resumes();
  std::optional<base::Duration> over_time_limit(const Job& job) const;

  const Options options_;
  base::Instant now_{base::Instant::min()};
  Cluster cluster_;
  NodeGroups groups_;
  std::uint64_t cluster_version_ = 0;   // that groups_ were built for
  std::uint64_t topology_version_ = 0;  // that the books were built for
  JobBooks books_;
  JobQueue queue_;
  Placement placement_;
  Priority lowest_priority_{0xffff0000U};  // R9.2
  // The gang: with told timing one world, otherwise components.
  std::optional<gang::World> world_;
  gang::Components components_;
  NodePlans plans_;

  std::set<std::pair<base::Instant, JobId>>
      eligible_timers_;  // begin time, requeue delay, deadline
  std::set<std::pair<base::Instant, JobId>> grace_timers_;
  std::set<std::pair<base::Instant, JobId>> limit_timers_;
  // Queued jobs whose reason is None or Resources; others may be among them. All that a pass does
  // with records behind the last partition's failure is to make their reason Priority.
  std::vector<JobId> unexplained_;       // some of them more than once
  std::set<JobId> waiting_resumes_;      // resumed by their users, no row is free yet
  std::uint64_t resumes_version_ = 0;    // when they were last tried
  std::set<std::string> removed_nodes_;  // that still have jobs

  // A pass over an unchanged state ends as the last one did (BlockedPassUnchanged).
  std::uint64_t passed_version_ = 0;
  base::Instant passed_until_{};
  std::uint64_t event_passed_version_ = 0;
  base::Instant next_full_pass_{};

  std::vector<JobRun> runs_;
};

}  // namespace sched
