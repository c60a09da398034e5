// ControlLoop: objects that changed become events of the scheduler, its decisions become writes.
// One object, one thread: step() is called again when the Inbox has something or at the instant
// that it returned; nothing in it blocks.
//
// It has no state of its own but the parts (loop/parts.h), each of which owns what it knows. The
// loop is the order in which they are asked for what they write, and what of one part concerns
// another.
//
// The order of writes follows from state, not from a script, so that it is the same
// after a crash (publish/commit_gate.h; architecture.md 3, "Commit points").
//
// A new leader's first step() restores (everything is in the API server): it needs complete first
// lists in the Inbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/clock.h"
#include "operator/loop/inbox.h"
#include "operator/loop/newest.h"
#include "operator/loop/parts.h"
#include "translation/allocation.h"

namespace control {

class ControlLoop : private LoopBasis, private LoopParts {
 public:
  // All references must live longer than this.
  ControlLoop(const kube::Clock& clock, Inbox& inbox, Writer& writer, TemplateBook& templates,
              LoopHooks hooks);
  // The parts refer to each other.
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // Notes the election that made this process the leader. Before the first step.
  void lead(std::int32_t lease_transitions) { lease_transitions_ = lease_transitions; }

  // Agents are pods of this namespace. Before the first step.
  void expect_agents_in(std::string ns) { agents_.expect_in(std::move(ns)); }

  // Gives Jobs to pods with kubegang's scheduling gate. Before the first step.
  void adopt_pods(GatedPods::Adopts adopts) { gated_.adopt(adopts); }

  // No Job is deleted for its age before kubegang-records has stored it, as this Lease says. Before
  // the first step.
  void wait_for_records(kube::ObjectKey lease) { recorded_.follow(std::move(lease)); }

  // Notes that the wall clock of this machine differs from the API servers', and that no other
  // process leads. Jobs start and end as usual, but none ends because its time is over or is
  // deleted for its age. Before the first step.
  void distrust_clock();

  // Does everything that is due. Returns when to be called again at the latest (wall clock).
  // REQUIRES at the first call: the Inbox has complete first lists of all kinds.
  base::Instant step();

  std::int64_t term() const { return term_; }
  const LoopCounters& counters() const { return counters_; }
  const JobTotals& totals() const { return totals_; }
  // Returns true if a decision made now would wait for its turn to be written.
  bool writes_wait() const { return writer_.is_busy(); }
  // Calls action(uid, status) for each job, and each task of an array (record_key), that has not
  // ended and has no write due or under way: the wanted status is stored, unless a change of it was
  // not marked.
  template <typename Action>
  void for_each_clean(Action action) const {
    jobs_.for_each_unfinished([&](JobRecord& job) {
      const bool is_clean = job.status.exists() && !job.status.is_in_flight() &&
                            job.status.urgency() == WriteUrgency::kClean;
      if (is_clean) action(job.uid, job.wanted());
    });
  }
  // Does the same for timetables: action(node, spec).
  template <typename Action>
  void for_each_clean_timetable(Action action) const {
    timetables_.for_each_clean(action);
  }
  // Calls action(pod, is_unseen) for each pod of these jobs, as it is known; `is_unseen`: by the
  // answer to its creation alone.
  template <typename Action>
  void for_each_pod(Action action) const {
    jobs_.for_each_unfinished([&](JobRecord& job) {
      for (const auto& [name, pod] : *job.pods) {
        action(*pod, pods_.is_unseen(kube::key_of(pod->metadata)));
      }
    });
  }

 private:
  // --- the loop (loop/control_loop.cc) ---
  void take_inbox();
  template <typename T>
  void note_gone(Newest<T>& newest, const std::vector<typename Gone<T>::One>& gone);
  // Loops until nothing is left to do: policies, nodes and jobs become events of the scheduler, its
  // decisions touch jobs.
  void reconcile_until_quiet();
  void reconcile(JobRecord& job);
  void foretell(JobRecord& job);
  void end_task(JobRecord& task);
  void end_array(JobRecord& array);
  void note_change(const std::string& job_uid);

  // --- the writes of a step (loop/control_loop.cc) ---
  // Further turns of parts that have one already.
  struct BaseStates {};         // statuses that nothing waits for, as there is room
  struct OldTimetables {};      // those that go
  struct InformingPolicies {};  // statuses
  struct InformingJobs {};
  // The order in which parts are asked for writes: by what waits for them.
  using Turns = Kinds<
      // Pods wait for statuses and timetables. Pods get the room that these leave.
      StatusPublisher, TimetablePublisher, UsageKeeper, JobNumbers, PodWrites, BaseStates,
      // Thousands of each of these may become due at the same instant: after a restore of etcd, or
      // when a configuration is changed. Starts and ends do not stand behind them. A job may wait
      // for a pod that is gone, and nodes take no jobs while orphans are on them.
      PodIndex, OrphanPods, OldTimetables, NodeTaints,
      // All of these draw on one budget. Jobs are created for pods and batch Jobs here as well, as
      // far as there is room; these are not paid from it: only what explains something is.
      InformingPolicies, PodTrials, SuspensionNotes, ManagedJobs, GatedPods, Forecasts,
      InformingJobs,
      // Nothing waits for finished jobs to go, and after an absence there are thousands of them.
      TimeToLive, Recorded>;
  void check_turns();
  void write(std::type_identity<StatusPublisher> turn);
  void write(std::type_identity<TimetablePublisher> turn);
  void write(std::type_identity<UsageKeeper> turn);
  void write(std::type_identity<JobNumbers> turn);
  void write(std::type_identity<PodWrites> turn);
  void write(std::type_identity<BaseStates> turn);
  void write(std::type_identity<PodIndex> turn);
  void write(std::type_identity<OrphanPods> turn);
  void write(std::type_identity<OldTimetables> turn);
  void write(std::type_identity<NodeTaints> turn);
  void write(std::type_identity<InformingPolicies> turn);
  void write(std::type_identity<PodTrials> turn);
  void write(std::type_identity<SuspensionNotes> turn);
  void write(std::type_identity<ManagedJobs> turn);
  void write(std::type_identity<GatedPods> turn);
  void write(std::type_identity<Forecasts> turn);
  void write(std::type_identity<InformingJobs> turn);
  void write(std::type_identity<TimeToLive> turn);
  void write(std::type_identity<Recorded> turn);
  bool awaits_records() const;
  void count();
  void count_licenses();
  void be_fenced(std::int64_t by_term);
  void be_overtaken(const JobRecord& job);
  void look_at_clocks();
  void show_trust();
  void end(const std::string& why);

  // --- what of one part concerns another: changes (loop/observe.cc) ---
  template <typename T>
  requires(PolicyKinds::kContains<T>) void observe(const Changes<T>& changes) {
    policy_.observe(changes);
  }
  void observe(const Changes<kube::Node>& changes);
  void observe(const Changes<kube::NodeTimetable>& changes);
  void observe(const Changes<kube::BatchJob>& changes) { managed_.observe(changes); }
  void observe(const Changes<kube::PodGroup>& changes);
  void observe(const Changes<kube::UsageRecord>& changes);
  void observe(const Changes<kube::Job>& changes);
  void observe(const Changes<kube::Pod>& changes);
  void index_pod(const kube::ObjectKey& key, const std::shared_ptr<const kube::Pod>& pod);
  template <typename T>
  const T* known(const kube::ObjectKey& key) const;
  template <typename T>
  void take_answer(T object);
  void leave_orphans(const JobRecord& job);
  void forget(JobRecord& job);
  void decide_policy();
  void tell_nodes();
  void count_nodes();
  void choose_taints();
  void note_agent(const std::string& node);
  // Note how the node, or all nodes, slice.
  void note_slicing(const std::string& node);
  void note_slicing();
  UnslicedTime::Sources run_time_sources();
  void count_unsliced(const JobRecord& job);
  void note_late_table(const std::string& node);
  void take_plans();
  bool is_listed(const JobRecord& job) const;
  void show_counts();

  // --- outcomes (loop/answered.cc) ---
  template <typename T>
  void answered(StatusPatched<T>&& outcome);
  void tasks_answered(const StatusPatched<kube::Job>& outcome);
  void answered(TimetablePut&& outcome);
  void answered(TimetableDeleted&& outcome);
  void answered(UsagePut&& outcome);
  void answered(TemplateRead&& outcome) { pod_writes_.answered(std::move(outcome)); }
  void answered(PodCreated&& outcome);
  void answered(PodDeleted&& outcome);
  void answered(PodRead&& outcome);
  void answered(PodPinned&& outcome);
  void answered(ServiceCreated&& outcome) { pod_writes_.answered(std::move(outcome)); }
  void answered(StepSecretCreated&& outcome);
  void answered(StepObjectsDeleted&&) {}
  void answered(PodTried&& outcome) { wishes_.answered(std::move(outcome)); }
  void answered(IdsReserved&& outcome);
  void answered(TaintsSet&& outcome);
  void answered(PodNoted&& outcome);
  void answered(JobCreated&& outcome);
  void answered(JobDeleted&& outcome);
  void answered(RecordedRead&& outcome);
  void answered(OrphanDeleted&&) {}  // the watch tells
  void answered(ForecastMade&& outcome) { forecasts_.answered(std::move(outcome)); }
  void count_end(WriteEnd end);

  // --- restore (loop/restore.cc) ---
  void restore();
  std::optional<sched::JobFacts> restored_job(JobRecord& job, std::vector<sched::KnownJob>& known);
  void restore_allocated(JobRecord& job, sched::JobFacts& restored);
  void restore_ending(JobRecord& job, sched::JobFacts& restored);
  static sched::ArrayFacts restored_array(const ArrayRecord& array);
  void forget_plan(JobRecord& job);
  void restore_retry(const kube::JobStatus& status, sched::JobFacts& restored) const;
  void restore_claim(const JobRecord& job, sched::JobFacts& restored) const;
  std::vector<sched::NodePlan> published_plans();
  std::optional<sched::JobId> listed_in_rotation(const kube::TimetablePod& pod,
                                                 base::Instant as_of);
  void restore_unsliced();
  void restore_never_frozen();
  void number_anew(JobRecord& job);
  void restore_usage();
  std::optional<sched::EndedJob> ended_job(const kube::Job& job);
  NodesByName nodes_by_name() const;

  std::int32_t lease_transitions_ = 0;
  std::int64_t term_ = 0;
  bool restored_ = false;
  bool ended_ = false;  // it leads no more
  // The two clocks at the last step, to tell how they should have gone on since.
  std::optional<std::pair<base::Instant, base::Duration>> clocks_;

  // The kinds that are taken from answers, too.
  std::tuple<Newest<kube::Pod>, Newest<kube::Node>, Newest<kube::SchedulerConfig>> newest_;

  bool counts_changed_ = false;  // of partitions and QOS as they are shown
  base::Instant lag_taken_at_{};
};

}  // namespace control
