// Reordering: the records of a lane that have their new priorities, while the rest of the lane
// still waits. When all have them it is the order of the lane.
//
//   1. Records that are added continue the last run if they come behind it, otherwise they are a
//      run of their own. Mostly all jobs get older together, and there is one run.
// 2. merge() takes the first records of all runs, a few at a time.
//
// Records may come and go meanwhile.
//
// Cost: add O(records), with a small factor; merge O(runs) a record; insert O(log records) and
// erase O(runs × log records), and a few kilobytes copied.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "scheduler/queue/queue_record.h"
#include "scheduler/queue/sorted_records.h"

namespace sched {

class Reordering {
 public:
  // `moved`: they had another order before. REQUIRES: nothing has been merged.
  void add(SortedRecords records, bool moved);
  // Merges at most `count` records. Returns how many it may still merge when all is done, nullopt
  // if something is left. REQUIRES: all have been added.
  std::optional<std::size_t> merge(std::size_t count);

  // Returns false, without effect, if it is there.
  bool insert(const QueueRecord& record);
  // Returns false if it is not there.
  bool erase(const QueueRecord& record);

  // Returns false if all that was added had this order before.
  bool moved() const { return moved_; }
  // Takes the order of all. REQUIRES: merge() has nothing left.
  SortedRecords take() &&;

 private:
  bool is_merged(const QueueRecord& record) const {
    return merged_to_ && !SortedRecords::before(*merged_to_, record);
  }

  std::vector<SortedRecords> runs_;  // with copies of what is merged
  SortedRecords merged_;             // nothing as long as there is one run
  std::optional<QueueRecord> merged_to_;  // the last that was merged; it may be gone
  bool moved_ = false;
};

}  // namespace sched
