// Selector: which nodes, cores and memory a job gets (chapters 4 and 5). Two implementations:
// select/linear (whole nodes) and select/cons_tres (cores, CPUs or sockets). A selector keeps its
// own books of what jobs hold; it never decides which jobs run now (gang) nor in which order
// (queue).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/model/node_set.h"

namespace sched {

// The part of a job that a selector sees, allocated or not. select/ stands below jobs/, so it has a
// type of its own; and because selectors keep pointers to it while the job is allocated (victims,
// mates, trials), it is a field of Job and is not made for each call. Most of it points into the
// job. JobBooks alone writes the fields that are copied there (state, partition, how it is stacked,
// its part as a victim), with the job's own. A job that is tried in a partition has one of the
// call's own.
struct SelectJob {
  JobId id;
  std::int64_t table_order = 0;  // job-table order; breaks ties
  const JobRequest* request = nullptr;
  const Allocation* allocation = nullptr;  // null while pending
  PartitionIndex partition;                // it runs in, or is tried in
  JobState state = JobState::kPending;     // kRunning or kSuspended when allocated
  bool user_suspended = false;             // cores given back, memory kept (T10)
  bool may_stack = false;                  // as resolved at its start (4.3); of an allocated job
  // As a victim: its effective mode (7.1), and until when it is exempt (start + exempt time, 7.3).
  PreemptMode victim_mode = PreemptMode::kOff;
  std::optional<base::Instant> exempt_until{};
};

// 3.8. kWillRun: as kRunNow, of books that a trial may have changed, and without a choice that is
// only for jobs that start at once.
enum class SelectMode { kTestOnly, kRunNow, kWillRun };

// A possible victim, in the order of 7.4, with its effective mode (7.1).
struct Candidate {
  const SelectJob* job;
  PreemptMode mode;

  // It leaves its nodes, at once or after its grace time; otherwise it is suspended there.
  bool must_end() const { return mode == PreemptMode::kCancel || mode == PreemptMode::kRequeue; }
};

struct SelectRequest {
  const SelectJob* job = nullptr;
  SelectMode mode = SelectMode::kRunNow;
  base::Instant now{};
  // Candidate nodes by rank (ascending = node order), already filtered by partition, state,
  // features, exclusion and 3.6 step 4; and the required ones, a subset of them.
  const NodeSet& nodes;
  const NodeSet& required;
  bool any_required = true;  // false: `required` is empty, which then is not looked at
  int min_nodes = 1, req_nodes = 1, max_nodes = 1;  // resolved (4.1)
  // The resolved sharing status (4.3).
  bool whole_nodes = false;
  bool may_stack = false;  // units may be shared with max_share − 1 others
  int max_share = 1;
  std::span<const Candidate> candidates;  // empty = no preemption in this call (3.6 step 4g)
  // Licenses that victims must bring, besides nodes (reclaim_licenses); null = none. REQUIRES:
  // candidates, select/cons_tres.
  const Licenses* missing = nullptr;
  // kWillRun: the job preempts others by suspending them (preempt/qos), so the extra row is its
  // (7.6.3); and the nodes that are taken last (bf_busy_nodes), or null.
  bool takes_extra_row = false;
  const NodeSet* idle_last = nullptr;
};

struct SelectOutcome {
  std::optional<Allocation> allocation;  // nothing = it does not fit now
  // Indexes into request.candidates. CANCEL/REQUEUE victims: the job must wait for them.
  // SUSPEND victims (linear): told for the record, gang stops them.
  std::vector<std::size_t> victims;
};

// Answers where a job would be placed.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Tiers, preempt modes and limits are read from the cluster at each call.
  virtual SelectOutcome select(const SelectRequest& request) = 0;
};

// A selector is made for one Cluster::topology_version(): when that changes, or the configuration,
// the scheduler makes a new one and adds all allocated jobs again, in job-table order. Everything
// that nodes have beside their hardware changes during its life.
class Selector : public Chooser {
 public:
  // Bookkeeping. add: at a start, or at a restore; remove: at the *start* of completion (R2.1).
  virtual void add(const SelectJob& job) = 0;
  virtual void remove(const SelectJob& job) = 0;
  // T10/T11: cores are released and taken again, memory is kept. Gang suspension calls neither.
  virtual void user_suspend(const SelectJob& job) = 0;
  // Returns false, without effect, if no row is free for it.
  virtual bool user_resume(const SelectJob& job) = 0;

  // The node's memory may be another one. Cost: O(1), and in the next question what follows from it
  // for this node. REQUIRES: no trial lives.
  virtual void node_changed(int rank) = 0;

  // The books as if these jobs were gone. A trial changes the books for the questions that are
  // asked while it lives; its end restores them exactly. Cost: O(nodes of the removed jobs).
  class Trial {
   public:
    // The resources that a removed job leaves on its nodes: a job that would be suspended keeps its
    // memory and its place among the jobs there (R5.4), one that would end leaves nothing.
    enum class Keep { kMemory, kNothing };
    virtual ~Trial() = default;
    // REQUIRES: the job was added, and not yet removed in this trial.
    virtual void remove(const SelectJob& job, Keep keep) = 0;
    // Puts the job back that was removed last. Returns false if that can no longer be done; then
    // nothing changed, and a new trial must begin. REQUIRES: a job is removed.
    virtual bool put_back() = 0;
    // Returns a copy of the books as they are in the trial, which answers without candidates until
    // the books change, also when the trial is over. Rows that are due to be packed are packed in
    // the copy alone: what it answers does not depend on what was asked before. Null if the
    // selector makes no copies. Cost: O(nodes × rows), and a packing.
    virtual std::unique_ptr<Chooser> copy() { return nullptr; }
  };
  // REQUIRES: no other trial lives. Until it ends the selector is asked nothing but select()
  // without candidates.
  virtual std::unique_ptr<Trial> begin_trial() = 0;
};

// select/linear. `cluster` must outlive the selector and be settled.
std::unique_ptr<Selector> make_linear_selector(const Cluster& cluster);
// select/cons_tres.
std::unique_ptr<Selector> make_cons_tres_selector(const Cluster& cluster);

}  // namespace sched
