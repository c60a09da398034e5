// EndBatches: the ends of the allocated jobs after which it is worth to look again: each end of a
// job with nodes in question. With Quirks::ends_come_in_batches those that end close together are a
// batch, which is as often as Slurm 22.05 looks. The windows of the batches grow, so
// that a day takes a dozen of them; with select/linear each end is a batch. They are counted from
// the half minute of Slurm's clock in which the first job of all ends, and the end of a job is
// looked at only if the job before it was taken.
//
// Threads: none. Cost: O(ends that are passed).
#pragma once

#include <cstddef>
#include <optional>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/victims.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class EndBatches {
 public:
  // Takes the ends from the `from`-th on that have nodes among these; without the victims (null =
  // there are none), which are gone from the beginning. The arguments must outlive this object.
  // REQUIRES: the ends are read.
  EndBatches(const Cluster& cluster, const Ends& ends, const NodeSet& nodes, const Victims* victims,
             std::size_t from = 0)
      : cluster_{cluster}, ends_{ends}, nodes_{nodes}, victims_{victims}, from_{from} {}

  // Returns how many ends are gone with the next batch, or nullopt if no more jobs with nodes in
  // question end.
  std::optional<std::size_t> next();

 private:
  void widen(base::Instant next);

  const Cluster& cluster_;
  const Ends& ends_;
  const NodeSet& nodes_;
  const Victims* const victims_;
  std::size_t from_;
  base::Duration window_ = std::chrono::seconds{30};  // of the next batch
  std::optional<base::Instant> windows_begin_;        // set by the first batch
};

}  // namespace sched
