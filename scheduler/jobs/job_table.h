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
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/job_facts.h"
#include "scheduler/model/job.h"
#include "scheduler/model/job_pages.h"
#include "scheduler/queue/queue_record.h"
#include "scheduler/select/selector.h"

namespace sched::gang {
struct Component;
}  // namespace sched::gang

namespace sched {

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

// A job: what the API server holds of it, and what the scheduler works out from that. Each section
// has the writers that its heading names; all others read. Parts that keep more than a field or two
// have a struct of their own.
//
// As in JobFacts, the fields that a turn, a start and an end touch stand first.
struct Job : JobFacts {
  // --- JobBooks ---
  alignas(64) std::int64_t table_order = 0;
  Reason reason = Reason::kNone;
  bool cores_released = false;  // T10: by a user's suspend of a running job
  SharingStatus sharing;

  // Written by gang::Turns.
  struct Turn {
    bool in_gang = false;
    gang::Component* component = nullptr;  // of a job with conflicts; gang::Components keeps it
  } turn;

  // --- JobBooks, continued ---
  std::vector<NodeIndex> clean_nodes;  // nothing of the job is left there; ascending
  SelectJob select;                    // what the selectors see of it
  std::string message;
  // The promise of the last pass of the backfill, while the job is queued.
  struct Plan {
    base::Instant start;
    std::vector<NodeIndex> nodes;
    friend bool operator==(const Plan&, const Plan&) = default;
  };
  std::optional<Plan> plan;
  // The tasks of an array that are jobs of their own and have not ended.
  struct Tasks {
    std::set<JobId> own;
    int allocated = 0;  // of these
    int running = 0;    // of these; completing ones do not count for the throttle (13.4)
    int begun = 0;      // of these; they are allocated, or wait again
  };
  std::unique_ptr<Tasks> tasks;
  Job* whole = nullptr;  // of such a task: its array

  // Written by Admission. New priorities of all waiting jobs read and write this and the next
  // (SortedRecords::change_all() asks for their memory ahead).
  struct Queued {
    Priority priority{};  // of the job's record, if it has a single one
    // One per partition; empty = not queued. The priority of a single one is `priority`, and not
    // the copy in here.
    std::vector<QueueRecord> in;
  };
  alignas(64) Queued queued;

  // Written by Priorities.
  struct Factors {
    // multifactor, of a job with one partition: what of the sum does not change with the time, and
    // the version of the configuration that it follows from (0 = it is not known).
    std::int64_t fixed_terms = 0;
    std::uint64_t fixed_terms_version = 0;
    std::optional<AssociationIndex> association;
    // It was tested, as each job that is not held is when it is submitted: with select/linear its
    // size counts the CPUs of whole nodes from then on (R9.3).
    bool was_tested = false;
    std::vector<PartitionPriority>
        priority_in;           // multifactor, and the job names several partitions
    base::Duration charged{};  // so much of its run time
  } factors;

  // Written by the engine, in replays alone.
  struct Replay {
    // A preemptor (P14): it chooses no further victims until then, and in Slurm's FIFO (P21) it is
    // passed over.
    base::Instant preempts_until{};
    base::Instant passed_over_until{};
    // A victim (7.8): chosen, but not ending yet.
    struct Notice {
      base::Instant until;  // the grace time is over
      JobId preemptor;
    };
    std::optional<Notice> notice;
  } replay;

  // --- TimeLimits ---
  std::optional<base::Instant> limit_timer;  // when its limit is looked at next

  bool is_array() const { return tasks != nullptr; }
  // Returns for how many jobs that wait or run the record stands.
  int count() const { return is_array() ? array->waiting.size() : 1; }
  // Returns how many of them may start, as far as the job's array is concerned (13.4).
  int startable() const {
    const Job* const all = is_array() ? this : whole;
    if (all == nullptr) return count();
    const ArrayRequest& asked = *all->request->array;
    int most = count();
    if (asked.at_once) most = std::min(most, *asked.at_once - all->tasks->running);
    if (asked.begun_most && !has_begun) {
      most = std::min(most, *asked.begun_most - all->tasks->begun);
    }
    return std::max(0, most);
  }
  bool is_throttled() const { return count() > 0 && startable() == 0; }
  bool has_left(NodeIndex node) const {
    return std::binary_search(clean_nodes.begin(), clean_nodes.end(), node);
  }
  // While its victims may still be ending it chooses no further ones (7.7 step 2).
  bool waits_for_victims(base::Instant now) const {
    return now < (claim ? claim_until : replay.preempts_until);
  }
};

class JobTable {
 public:
  // Adds a record at the end of the table; that of a task stands behind its array's, in the order
  // of tasks. REQUIRES: no record with this id.
  Job& add(JobFacts facts);
  // Puts the task in the place of its array, which goes to the end of the table.
  void swap_places(Job& array, Job& task);
  void erase(JobId id);
  Job* find(JobId id) { return by_id_.find(id); }
  const Job* find(JobId id) const { return by_id_.find(id); }
  std::size_t size() const { return by_order_.size(); }
  // In job-table order.
  const std::map<std::int64_t, std::unique_ptr<Job>>& all() const { return by_order_; }

 private:
  std::map<std::int64_t, std::unique_ptr<Job>> by_order_;
  JobPages<Job> by_id_;
  // The orders in between are for tasks.
  static constexpr std::int64_t kBetween = std::int64_t{JobId::kTasksMax} + 1;
  std::int64_t next_order_ = kBetween;
};

}  // namespace sched
