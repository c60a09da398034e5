// MainPass: one walk over the queue, which starts what can start now (3.4). It asks StartAttempt
// about each record and decides what the verdict means:
//
//   Fits          the job starts; of an array one task, and the next is tried.
//   NeedsVictims  its victims' ends are decided, once; it claims their nodes; its partition fails.
//   TooFewLeft    its partition fails.
//   Busy          its partition fails, unless the job waits for nodes that it names.
//   Never         the job is held, unless another partition might hold it.
//   NotAvailable, OverLimit: the job waits; jobs behind it may start. With bf_licenses the pass
//                 ends at a job that waits for licenses: the backfill knows when they are free.
//
// When a partition fails, the jobs behind it in the partition wait for priority, and its nodes are
// withheld from all jobs behind (strict order; backfilling past them is another pass's business).
//
// A pass over an unchanged state would end as the last one did, so it is left out. "Unchanged" is
// JobBooks::version(), and the instants until which the last pass's answers hold.
//
// Cost: O(records tried × placement); records behind the last partition's failure cost nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/pass/start_attempt.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/queue/admission.h"
#include "scheduler/queue/partition_gates.h"

namespace sched {

// The effects of a pass, as the engine carries them out.
class PassActions {
 public:
  virtual ~PassActions() = default;
  // False: this cannot have happened, so the pass goes no further.
  virtual bool may_start(const Job& /*job*/) { return true; }
  virtual bool may_preempt(const NeedsVictims& /*needs*/) { return true; }
  // Returns the job that has started: of an array one of its tasks.
  virtual Job& start(Job& job, PartitionIndex partition, Fits fits) = 0;
  // Ends the victims that must end; the job claims the nodes until they are gone (7.7).
  virtual void preempt_for(Job& job, NeedsVictims needs) = 0;
};

class MainPass {
 public:
  // The arguments must outlive this object.
  MainPass(const Cluster& cluster, const NodeGroups& groups, JobBooks& books,
           const ResourceLimits& limits, Admission& admission, PassActions& actions)
      : cluster_{cluster},
        groups_{groups},
        books_{books},
        admission_{admission},
        actions_{actions},
        attempt_{cluster, groups, books, limits} {}

  // Tries at most `depth` records; nullopt = all.
  // Returns true if another pass could start more jobs: a job that had blocked a partition was
  // itself started in a different one.
  bool run(base::Instant now, std::optional<int> depth);

  // Returns the version of the state that the last pass saw to the end of the queue, and until when
  // its answers hold.
  std::uint64_t passed_version() const { return passed_version_; }
  base::Instant passed_until() const { return passed_until_; }

 private:
  struct State;
  bool is_full(const State& pass, std::optional<int> depth) const;
  void try_record(State& pass, const QueueRecord& record);
  static void note_done(State& pass, Job& job);
  void on(State& pass, Job& job, PartitionIndex partition, Fits verdict);
  void on(State& pass, Job& job, PartitionIndex partition, NeedsVictims verdict);
  void on(State& pass, Job& job, PartitionIndex partition, TooFewLeft verdict);
  void on(State& pass, Job& job, PartitionIndex partition, Busy verdict);
  void on(State& pass, Job& job, PartitionIndex partition, NotAvailable verdict);
  void on(State& pass, Job& job, PartitionIndex partition, Never verdict);
  void on(State& pass, Job& job, PartitionIndex partition, OverLimit verdict);
  std::optional<Refusal> needs_backfill(const Job& job, PartitionIndex partition) const;
  bool holds_up_no_other(State& pass, const Job& job) const;
  void fail_partition(State& pass, const Job& job, PartitionIndex partition);
  void wait_for_priority(State& pass, Job& job);
  void wait_for_priority_behind(State& pass);
  bool is_held_as_impossible(State& pass, Job& job);

  const Cluster& cluster_;
  const NodeGroups& groups_;
  JobBooks& books_;
  Admission& admission_;
  PassActions& actions_;
  StartAttempt attempt_;
  std::uint64_t passed_version_ = 0;
  base::Instant passed_until_{};
};

}  // namespace sched
