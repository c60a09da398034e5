// Startable: the records of a pass that may still start now. Records whose jobs ask for the same
// are one kind, so that the lookahead is asked once for all of them.
//
// Cost: add O(kinds); any_from O(kinds) and the questions of the kinds that turn out not to start.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Startable {
 public:
  struct Kind {
    Job* job;  // one of them
    PartitionIndex partition;
    bool special = false;  // a job that is a kind of its own: nothing is known of it
    // The records that are still to come, the last one first: each with its index, and the least
    // limit of the records from it on.
    std::vector<std::pair<std::size_t, base::Duration>> records{};
    std::optional<NodeSet> nodes{};  // where a job of this kind can start, when it was last asked

    // Returns the least limit of the records that are still to come.
    base::Duration limit_min() const { return records.back().second; }
  };

  // The record has this index. REQUIRES: it stands before those that were added.
  void add(std::size_t index, Kind kind, base::Duration limit);

  // Returns true if can_start(kind) is true of a kind that has records from `next` on. A kind of
  // which it is false is forgotten. REQUIRES: `next` does not go down.
  template <typename CanStart>
  bool any_from(std::size_t next, const CanStart& can_start) {
    for (; !kinds_.empty(); kinds_.pop_back()) {
      Kind& kind = kinds_.back();
      while (!kind.records.empty() && kind.records.back().first < next) kind.records.pop_back();
      if (!kind.records.empty() && can_start(kind)) return true;
    }
    return false;
  }

 private:
  std::vector<Kind> kinds_;
};

}  // namespace sched
