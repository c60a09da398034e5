// JobTable: the scheduler's record of every job that is not forgotten, in job-table order (the
// order in which the records were created; all scans without an explicit sort use it, 0.3).
//
// Records have stable addresses until they are erased; selectors keep pointers to Job::select.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/decision.h"
#include "scheduler/jobs/holds.h"
#include "scheduler/model/job.h"
#include "scheduler/model/job_pages.h"
#include "scheduler/queue/queue_record.h"
#include "scheduler/select/selector.h"

namespace sched::gang {
struct Component;
}  // namespace sched::gang

namespace sched {

// An ending that was decided. Only a cancel turns a requeue or a preemption, which may have a grace
// time, into an ending without one; everything else is final. `state` and allocation stay until
// JobGone (T5, T6).
struct Ending {
  JobState final_state = JobState::kCompleted;  // kPending = requeue
  std::optional<EndingVerdict> verdict;         // nothing = the job ended by itself
  base::Instant grace_end{};                    // until then it may go on (7.8)
  std::optional<JobId> preemptor;
  int exit_code = 0;
  bool killed = false;       // the grace is over, or there was none: cores are released (R2.1)
  bool node_failed = false;  // it is requeued because a node failed, which counts (13.5)
  friend bool operator==(const Ending&, const Ending&) = default;
};

// Run and suspended time (R13.20, R13.22), as of `as_of`; the phase since then is added on reading.
struct JobClock {
  enum class Phase { kIdle, kRunning, kSuspended };
  Phase phase = Phase::kIdle;
  base::Duration run{};
  base::Duration suspended{};
  base::Instant as_of{};

  void to(Phase next, base::Instant now) {
    if (phase == Phase::kRunning) run += now - as_of;
    if (phase == Phase::kSuspended) suspended += now - as_of;
    phase = next;
    as_of = now;
  }
  base::Duration run_at(base::Instant now) const {
    return phase == Phase::kRunning ? run + (now - as_of) : run;
  }
  base::Duration suspended_at(base::Instant now) const {
    return phase == Phase::kSuspended ? suspended + (now - as_of) : suspended;
  }
  friend bool operator==(const JobClock&, const JobClock&) = default;
};

// How a job may share its nodes, resolved at its start (4.3).
struct SharingStatus {
  bool whole_nodes = false;
  bool may_stack = false;    // its units may be shared with max_share − 1 others
  bool shares_nodes = true;  // others may be on its nodes at all; false: "no_share" (R4.4)
  int max_share = 1;
  friend bool operator==(const SharingStatus&, const SharingStatus&) = default;
};

// The priority of a job in one of its partitions.
struct PartitionPriority {
  PartitionIndex partition{};
  Priority priority{};
  friend bool operator==(const PartitionPriority&, const PartitionPriority&) = default;
};

// Each section of a job has the writers that its heading names. All others read.
//
// The fields that a turn, a start and an end touch stand first and close together: where many jobs
// change at one instant, the time goes into the cache lines of these jobs.
struct Job {
  // --- JobBooks ---
  alignas(64) JobId id;
  std::int64_t table_order = 0;
  JobState state = JobState::kPending;
  Reason reason = Reason::kNone;

  // --- JobBooks: the allocation, while `partition` is set ---
  std::optional<PartitionIndex> partition;
  SharingStatus sharing;
  bool ready = false;
  bool user_suspended = false;  // prio 0 in Slurm's terms (T10, T11)
  bool cores_released = false;  // T10: by a user's suspend of a running job

  // --- gang::Turns; the engine at a start, a requeue and JobRan (clock) ---
  bool in_gang = false;
  gang::Component* component = nullptr;  // of a job with conflicts; gang::Components keeps it
  JobClock clock;

  // --- JobBooks: the allocation, continued ---
  Allocation allocation;
  std::optional<Ending> ending;
  std::vector<NodeIndex> clean_nodes;  // nothing of the job is left there; ascending
  SelectJob select;                    // what the selectors see of it
  base::Instant allocated_at{};
  std::optional<base::Instant> start_time;

  // --- JobBooks ---
  JobRequest request;
  std::string message;

  // --- the line of memory that new priorities of all waiting jobs read and write ---
  // SortedRecords::change_all() asks for it ahead. The sections of its fields are in brackets.
  alignas(64) Priority priority{};  // as computed or given; `held` counts as 0 [the life cycle]
  Priority queued_priority{};       // of the job's record, if it has a single one [Admission]
  base::Instant eligible_time{};    // [Admission]
  // multifactor, of a job with one partition: what of the sum does not change with the time, and
  // the version of the configuration that it follows from (0 = it is not known). [Priorities]
  std::int64_t fixed_terms = 0;
  std::uint64_t fixed_terms_version = 0;
  std::optional<AssociationIndex> association;  // [Priorities]
  // One per partition; empty = not queued. The priority of a single one is `queued_priority`, and
  // not the copy in here. [Admission]
  std::vector<QueueRecord> queued_in;

  // --- the life cycle: engine and MainPass (held) ---
  Holds held;
  base::Instant submit_time{};              // reset by a requeue (T7)
  std::optional<base::Instant> not_before;  // requeue delay
  int restarts = 0;
  int node_failures = 0;  // requeues of them since it was last held for that (13.5)
  int exit_code = 0;
  std::vector<NodeIndex> avoid_nodes;  // StartRefused
  base::Instant avoid_until{};
  base::Instant retry_at{};  // StartRefused without a node to blame; costs no age

  // --- Priorities ---
  // It was tested, as each job that is not held is when it is submitted: with select/linear its
  // size counts the CPUs of whole nodes from then on (R9.3).
  bool was_tested = false;
  std::vector<PartitionPriority> priority_in;  // multifactor, and the job names several partitions
  base::Duration charged{};                    // so much of its run time

  // --- JobBooks: what the last pass of the backfill promised to it, while it is queued ---
  struct Plan {
    base::Instant start;
    std::vector<NodeIndex> nodes;
    friend bool operator==(const Plan&, const Plan&) = default;
  };
  std::optional<Plan> plan;

  // --- JobBooks: a claim of a preemptor that waits for its victims (P14), or of a job that its
  // user has resumed and that waits for room on its nodes (T11) ---
  std::optional<Allocation> claim;
  base::Instant claim_until{};

  // --- Engine: a preemptor in a replay (P14): it chooses no further victims until then, and in
  // Slurm's FIFO (P21) it is passed over ---
  base::Instant preempts_until{};
  base::Instant passed_over_until{};

  // --- Engine: a victim in a replay (7.8, as recorded): chosen, but not told to end yet ---
  struct Notice {
    base::Instant until;  // the grace time is over
    JobId preemptor;
  };
  std::optional<Notice> notice;

  // --- TimeLimits; the limit is set by the engine ---
  // In force from the start on, until its user changes the limit; nullopt = unlimited.
  std::optional<base::Duration> time_limit;
  std::optional<base::Instant> limit_timer;  // when it is looked at next

  bool pending() const { return state == JobState::kPending; }
  bool allocated() const { return partition.has_value(); }
  bool running() const { return state == JobState::kRunning; }
  bool suspended() const { return state == JobState::kSuspended; }
  // Allocated and its processes are on their way out: its nodes take no new jobs, but where nothing
  // of it is left (R2.1).
  bool completing() const { return allocated() && ending && ending->killed; }
  bool has_left(NodeIndex node) const {
    return std::binary_search(clean_nodes.begin(), clean_nodes.end(), node);
  }
  // While its victims may still be ending it chooses no further ones (7.7 step 2).
  bool waits_for_victims(base::Instant now) const {
    return now < (claim ? claim_until : preempts_until);
  }
};

class JobTable {
 public:
  // A new record at the end of the table. REQUIRES: no record with this id.
  Job& add(const JobRequest& request);
  void erase(JobId id);
  Job* find(JobId id) { return by_id_.find(id); }
  const Job* find(JobId id) const { return by_id_.find(id); }
  std::size_t size() const { return by_order_.size(); }
  // In job-table order.
  const std::map<std::int64_t, std::unique_ptr<Job>>& all() const { return by_order_; }

 private:
  std::map<std::int64_t, std::unique_ptr<Job>> by_order_;
  JobPages<Job> by_id_;
  std::int64_t next_order_ = 1;
};

}  // namespace sched
