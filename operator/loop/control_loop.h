// ControlLoop: objects that changed become events of the scheduler, its decisions become
// writes. It holds no scheduling rule. One object, one thread: step() is called again when
// the Inbox has something or at the instant that it returned; nothing in it blocks.
//
// What is written in which order (architecture.md 3, "Commit points") follows from state, not from
// a script, so that it is the same after a crash: a timetable is written only when no commit point
// of a job on that node is outstanding, pods are created only when the start is stored and the
// timetables of their nodes are, pods are deleted only when the ending is stored, and an ending
// waits for the claim or the readiness of its preemptor.
//
// A new leader's first step() restores (everything is in the API server): it needs complete first
// lists in the Inbox.
//
// The parts stand in loop/ (also the restore), policy/, nodes/, jobs/ and publish/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/clock.h"
#include "operator/gang/gang_observation.h"
#include "operator/jobs/job_numbers.h"
#include "operator/jobs/job_record.h"
#include "operator/jobs/pod_trials.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/template_book.h"
#include "operator/loop/inbox.h"
#include "operator/loop/report.h"
#include "operator/nodes/node_book.h"
#include "operator/nodes/node_taints.h"
#include "operator/nodes/observed_lag.h"
#include "operator/nodes/orphan_pods.h"
#include "operator/nodes/unsliced_time.h"
#include "operator/policy/policy_book.h"
#include "operator/publish/commit_gate.h"
#include "operator/publish/inform_budget.h"
#include "operator/publish/mirror.h"
#include "operator/publish/timetable_publisher.h"
#include "operator/translate/allocation.h"
#include "operator/translate/config_acceptance.h"
#include "operator/translate/job_translation.h"
#include "operator/write/writer.h"
#include "scheduler/scheduler.h"

namespace control {

// For /metrics; as of the last step.
struct LoopCounters {
  std::int64_t steps = 0;
  std::int64_t events = 0;     // told to the scheduler
  std::int64_t decisions = 0;  // taken from it
  base::Duration deciding{0};  // time in the scheduler for these, and for what nodes are to do
  std::int64_t starts = 0;
  std::int64_t status_writes = 0;
  std::int64_t timetable_writes = 0;
  std::int64_t pod_creates = 0;
  std::int64_t pod_deletes = 0;
  std::int64_t conflicts = 0;
  std::int64_t write_failures = 0;
  std::int64_t nodes_known = 0;  // of which anything is remembered
  std::int64_t jobs_pending = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_suspended = 0;
  std::int64_t jobs_finished = 0;   // of which nothing but their objects is kept
  base::Duration timetable_lag{0};  // of the node that has not obeyed for longest
};

class ControlLoop {
 public:
  // All references must live longer than this.
  ControlLoop(const kube::Clock& clock, Inbox& inbox, Writer& writer, TemplateBook& templates,
              LoopHooks hooks);

  // Of the election that made this process the leader. Before the first step.
  void lead(std::int32_t lease_transitions) { lease_transitions_ = lease_transitions; }

  // Does everything that is due. Returns when to be called again at the latest (wall clock).
  // REQUIRES at the first call: the Inbox has complete first lists of all kinds.
  base::Instant step();

  std::int64_t term() const { return term_; }
  const LoopCounters& counters() const { return counters_; }
  // What it decides now would wait for its turn to be written.
  bool writes_wait() const { return writer_.is_busy(); }

 private:
  struct PodPlace {
    std::string node;
    std::string job_uid;                   // "" = foreign
    std::shared_ptr<const kube::Pod> pod;  // null: foreign
  };
  // A job that has ended and of which nothing is left to be said (jobs/finished_jobs.cc).
  struct Finished {
    std::shared_ptr<const kube::Job> object;  // the informer's own
    std::int64_t arrival = 0;
    sched::JobId id{};
    base::Instant timer{base::kNever};  // of its time to live
  };

  // --- the loop (loop/control_loop.cc) ---
  void take_inbox();
  void take_lag();
  void fire_timers();
  // Until nothing is dirty: reconcile jobs, tell the scheduler, take its decisions.
  void reconcile_until_quiet();
  void tell(const sched::Event& event);
  base::Instant next_due();
  void touch(const std::string& uid) { dirty_jobs_.insert(uid); }
  // Its wanted status changed: it is written, and after a commit point the job is looked at again.
  void mark(JobRecord& job, WriteUrgency how);
  void write(std::optional<Effect> effect);
  void set_timer(JobRecord& job, base::Instant at);
  // Takes a finished one out again, so it costs its record for a step.
  JobRecord* find_job(const std::string& uid);
  JobRecord* find_job(sched::JobId id);  // of those that the scheduler knows
  void log(const std::string& message, const std::string& fields) const {
    report_.log(message, fields);
  }
  void warn(const std::string& message, const std::string& fields) const {
    report_.warn(message, fields);
  }
  void event(const JobRecord& job, bool warning, const std::string& reason,
             const std::string& message) const;
  void be_fenced(std::int64_t by_term);

  // --- restore (loop/restore.cc) ---
  void restore();
  std::int64_t highest_term() const;
  std::optional<sched::RestoredJob> restored_job(JobRecord& job);
  void restore_ending(JobRecord& job, sched::RestoredJob& restored);
  void restore_claim(const JobRecord& job, sched::RestoredJob& restored) const;
  std::vector<sched::NodePlan> published_plans();
  std::optional<sched::JobId> listed_in_rotation(const std::string& uid, base::Instant as_of);
  void restore_unsliced();
  NodesByName nodes_by_name() const;

  // --- configuration (loop/reconfigure.cc) ---
  template <typename T>
  void observe(const Changes<T>& changes) {
    policy_.observe(changes);
  }
  void reconfigure();
  void count_jobs();
  void write_due_numbers();
  void answered(IdsReserved&& outcome);

  // --- nodes (loop/nodes_and_timetables.cc) ---
  void observe(const Changes<kube::Node>& changes);
  void tell_nodes();
  void count_nodes();
  void choose_taints();
  void write_due_taints();
  void answered(TaintsSet&& outcome);
  void count_unsliced();
  std::optional<base::Duration> counting_run_time(const std::string& uid);

  // --- timetables (loop/nodes_and_timetables.cc) ---
  void observe(const Changes<kube::NodeTimetable>& changes);
  void take_plans();
  std::optional<ListedJob> listed_job(sched::JobId id);
  void write_due_timetables();
  void answered(TimetablePut&& outcome);

  // --- users' wishes (jobs/job_wishes.cc) ---
  void observe(const Changes<kube::Job>& changes);
  void on_job(const std::shared_ptr<const kube::Job>& object);
  void on_new_job(const std::shared_ptr<const kube::Job>& object);
  JobRecord& make_record(const std::shared_ptr<const kube::Job>& object, std::int64_t arrival,
                         sched::JobId id);
  void on_job_gone(JobRecord& job);
  void judge(JobRecord& job);
  void judge_waiting_jobs();
  void refuse(JobRecord& job, const std::vector<std::string>& problems);
  void try_due_pods();
  void answered(PodTried&& outcome);
  void refuse_change(JobRecord& job, const std::vector<std::string>& problems);
  void show_partitions(JobRecord& job);
  void show_accepted(JobRecord& job);
  void submit(JobRecord& job, sched::JobRequest request);
  void tell_wishes(JobRecord& job);
  void forget(JobRecord& job);

  // --- jobs that have ended (jobs/finished_jobs.cc) ---
  void reconcile_finished(JobRecord& job);
  void leave_scheduler(JobRecord& job);
  void judge_finished(JobRecord& job);
  void check_ttl(JobRecord& job);
  void answered(JobDeleted&& outcome);
  void put_away(JobRecord& job);
  void keep_finished(const std::shared_ptr<const kube::Job>& object, sched::JobId id);
  JobRecord* take_out(const std::string& uid);

  // --- decisions (jobs/decisions.cc) ---
  void apply(const sched::Decision& decision);
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
  void take_slots(JobRecord& job);
  void leave_nodes(JobRecord& job);
  void show_times(JobRecord& job);
  void show_completing(JobRecord& job);

  // --- pods (jobs/job_reconciler.cc) ---
  void observe(const Changes<kube::Pod>& changes);
  void index_pod(const kube::ObjectKey& key, const std::shared_ptr<const kube::Pod>& pod);
  void reconcile(JobRecord& job);
  void reconcile_ending(JobRecord& job);
  void reconcile_running(JobRecord& job);
  void delete_stale_pods(JobRecord& job);
  void leave_rotation(JobRecord& job, const std::string& why);
  void ready(JobRecord& job);
  void end_by_itself(JobRecord& job, const GangFailure& failure);
  void undo_start(JobRecord& job, StartUndo undo);
  void finish_undo(JobRecord& job);
  void launch(JobRecord& job, const std::vector<int>& missing);
  void keep_template(const std::string& uid, const kube::Job& answer);
  void create_pods(JobRecord& job, const kube::Job& object);
  void ensure_service(JobRecord& job);
  // The job that a pod was to be created for, unless that start is over: the pod is under way no
  // more.
  JobRecord* creation_ended(const std::string& uid, std::int64_t starts, int index);
  void answered(TemplateRead&& outcome);
  void answered(PodCreated&& outcome);
  void answered(ServiceCreated&& outcome);
  void answered(PodDeleted&& outcome);
  void answered(OrphanDeleted&&) {}  // the watch tells
  void delete_pod(JobRecord& job, const kube::Pod& pod, std::optional<base::Instant> kill_at);
  bool has_pods_left(const JobRecord& job) const;
  void write_due_orphans();

  // --- statuses (publish/status_publisher.cc) ---
  void write_due_statuses();
  void write_due_informing();
  void queue_informing(const JobRecord& job);
  void refresh_running();
  template <typename T>
  void write_status(WritePoint point, StatusMirror<T>& mirror);
  template <typename T>
  void answered(StatusPatched<T>&& outcome);
  template <typename T>
  void on_status_written(StatusMirror<T>& mirror, const base::Result<T>& result,
                         const base::Result<T>& fresh);
  // Null: not known any more.
  StatusMirror<kube::Job>* mirror_of_job(const std::string& uid);
  void write_job_status(JobRecord& job);
  void observe_stored(JobRecord& job, const kube::Job& object);

  const kube::Clock& clock_;
  Inbox& inbox_;
  CountedWriter writer_;
  TemplateBook& templates_;
  const Report report_;
  const CommitGate gate_;
  std::int32_t lease_transitions_ = 0;

  base::Instant now_{};
  ObservedLag lag_;
  base::Instant lag_taken_at_{};
  std::int64_t term_ = 0;
  bool restored_ = false;
  bool fenced_ = false;
  LoopCounters counters_;
  sched::Scheduler scheduler_{sched::Options{}};

  // Objects.
  std::map<std::string, std::unique_ptr<JobRecord>> jobs_;  // by UID; the rest is in finished_
  std::map<std::string, JobRecord*> unfinished_;            // of them
  std::map<std::string, Finished> finished_;                // by UID
  std::map<kube::ObjectKey, std::string> uid_of_;           // of the objects that exist
  std::map<sched::JobId, std::string> uid_by_id_;
  NodeBook nodes_{report_};
  TimetablePublisher timetables_{nodes_, gate_, report_};
  std::map<kube::ObjectKey, PodPlace> pods_;
  PolicyBook policy_;

  // To do.
  std::set<std::string> dirty_jobs_;   // UIDs
  std::set<std::string> status_jobs_;  // UIDs whose status may have to be written at once
  std::set<std::pair<base::Instant, std::string>> timers_;
  bool plans_dirty_ = false;
  bool counts_dirty_ = false;

  // Parts that own what they need.
  JobNumbers numbers_;
  NodeTaints taints_;
  OrphanPods orphans_;
  PodTrials trials_;
  InformBudget inform_;
  UnslicedTime unsliced_;
  std::int64_t arrivals_ = 0;

  static constexpr base::Duration kRefreshPeriod = std::chrono::minutes{1};
  base::Instant refreshed_at_{};
};

}  // namespace control
