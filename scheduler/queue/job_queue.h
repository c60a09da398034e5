// JobQueue: the records {job, partition} that a pass tries, in a strict total order (3.3).
//
// 3.3 is not an order if QOS may preempt each other (P13). Here the records of one QOS form a lane
// in the order of steps 3 to 8 (with WITHIN the higher priority comes before them); a pass always
// takes the best head of those lanes whose QOS no lane with records left may preempt (with
// PRIORITY: no lane with a job of higher priority left). QOS that preempt each other in a circle
// are one group: within it no job goes first for that reason. With partition_prio step 2 follows
// from step 4, since a preemptor is in a higher tier.
//
// Cost: insert and erase O(log records); walking O(lanes) per record, with PRIORITY O(lanes ×
// tiers × log records).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/queue/queue_record.h"
#include "scheduler/queue/reordering.h"
#include "scheduler/queue/sorted_records.h"

namespace sched {

// Returns true with sched/builtin, priority/basic and one tier for all partitions: Slurm does not
// sort then, and tries jobs in job-table order, whatever their priorities are (recordings
// queue_priority_builtin and queue_tier_order).
bool is_fifo(const Cluster& cluster);

class JobQueue {
 public:
  // Forgets all records; lanes as the configuration has them.
  void configure(const Cluster& cluster);
  void insert(const QueueRecord& record, const Cluster& cluster);
  // Returns true if the record still waited for its new priority (begin_priorities()).
  bool erase(const QueueRecord& record, const Cluster& cluster);
  std::size_t size() const { return size_; }
  // Records by PartitionIndex.
  const std::vector<int>& counts() const { return counts_; }

  // Lets all records that are there now wait for new priorities; until they are done, the queue has
  // no order. Records that are inserted meanwhile keep their priorities.
  void begin_priorities();
  // Works on at most `count` records: each gets the priority that priority_of(record) returns, and
  // then its new place. Returns nullopt if another step must follow; after the last one false if
  // the order in which walk() visits the records is certainly the same as before.
  // REQUIRES: begun, and not done.
  // Cost: see Reordering; the last step frees the memory of the records that were merged.
  std::optional<bool> step_priorities(
      std::size_t count, const std::function<Priority(const QueueRecord&)>& priority_of);

  // Calls visit(record) in queue order until it returns false. The queue must not change meanwhile.
  // REQUIRES: it has an order.
  void walk(const std::function<bool(const QueueRecord&)>& visit) const;

 private:
  struct Before {  // a lane whose records go first …
    std::size_t lane;
    bool by_priority;  // … if their priority is higher
  };
  struct Lane {
    SortedRecords records;  // while new priorities are worked out: those that still have old ones …
    std::optional<Reordering> reordering{};  // … and those that have the new
    std::vector<Before> before;
    bool within = false;
  };
  std::size_t lane_of(const Job& job, const Cluster& cluster) const;
  static QueueRecord in_lane(const Lane& lane, QueueRecord record) {
    if (lane.within) record.within = record.priority;
    return record;
  }
  static Priority highest_from(const SortedRecords& records, SortedRecords::Position head);

  std::vector<Lane> lanes_{1};
  std::size_t size_ = 0;
  std::vector<int> counts_;
};

}  // namespace sched
