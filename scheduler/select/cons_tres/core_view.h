// CoreView: cores that an attempt may take: all of a node minus those that it must leave alone.
#pragma once

#include <vector>

#include "scheduler/select/cons_tres/occupancy.h"

namespace sched::cons_tres {

// A view keeps pointers to what it subtracts and works each node out when it is asked, so it always
// shows the books of the moment. Cost: free() is O(what was subtracted).
class CoreView {
 public:
  explicit CoreView(const Occupancy& occupancy) : occupancy_{&occupancy} {}
  // Subtracts the cores, by rank; nullptr = nothing. Must outlive the view.
  void subtract(const CoreSet* by_rank) {
    if (by_rank != nullptr) taken_.push_back(by_rank);
  }
  void subtract(const PartitionRows& rows) { rows_.push_back(&rows); }
  void subtract_busy() { without_busy_ = true; }

  CoreSet free(int rank) const {
    CoreSet cores = occupancy_->facts(rank).cores;
    if (without_busy_) cores -= occupancy_->busy(rank);
    for (const CoreSet* taken : taken_) cores -= taken[rank];
    for (const PartitionRows* rows : rows_) cores -= rows->used(rank);
    return cores;
  }

 private:
  const Occupancy* occupancy_;
  std::vector<const CoreSet*> taken_;
  std::vector<const PartitionRows*> rows_;
  bool without_busy_ = false;
};

}  // namespace sched::cons_tres
