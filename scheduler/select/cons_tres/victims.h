// Victims: which jobs must be preempted for a job to start (7.6.2, 7.6.3). Works on trials of
// the occupancy, which is unchanged afterwards; everything it marks is local to one call (P15).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "scheduler/select/cons_tres/attempt.h"

namespace sched::cons_tres {

class VictimSearch {
 public:
  // `fits_on_nodes`: without victims; only licenses are missing.
  VictimSearch(const Cluster& cluster, Occupancy& occupancy, Attempt& attempt,
               const SelectRequest& request, bool fits_on_nodes)
      : cluster_{cluster},
        occupancy_{occupancy},
        attempt_{attempt},
        request_{request},
        fits_on_nodes_{fits_on_nodes} {}

  // REQUIRES: the job does not fit without victims, or licenses are missing.
  SelectOutcome search();

 private:
  SelectOutcome by_suspending();  // of preempt/qos (7.6.3)
  SelectOutcome by_removing();    // CANCEL and REQUEUE (7.6.2)
  // 15.4: of the jobs that must end, the cheapest that suffice; `found` when there are too many to
  // ask.
  SelectOutcome cheapest(SelectOutcome found);
  // Removes candidates in this order until the job fits: how many, and where.
  struct Success {
    std::size_t removed_count;
    Allocation allocation;
  };
  std::optional<Success> remove_until_fits(const std::vector<std::size_t>& order);
  void reorder(std::vector<std::size_t>& order, const Success& success) const;
  int nodes_shared(std::size_t candidate, const Allocation& allocation) const;
  bool intersects_nodes(const SelectJob& job) const;
  bool holds_missing(const SelectJob& job) const;
  bool may_help(const SelectJob& job) const;
  bool must_end(std::size_t candidate) const;

  const Cluster& cluster_;
  Occupancy& occupancy_;
  Attempt& attempt_;
  const SelectRequest& request_;
  const bool fits_on_nodes_;
};

}  // namespace sched::cons_tres
