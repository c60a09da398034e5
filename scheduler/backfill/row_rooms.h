// RowRooms: how many of the ends must be gone at least before a job may fit, where jobs are stacked
// so that free cores cannot be counted. A bound by the room in the rows of its partition (RowRoom):
// with fewer gone the job does not fit, with as many it may.
//
// Kept until the books change: the room of each partition, and for all jobs that need the same how
// many must be gone if all nodes of the partition are in question. With fewer nodes no fewer are
// enough, and for most questions that is all that has to be known.
//
// Threads: none. Cost: the first question about a partition O(allocated jobs); for each end that
// is looked at RowRoom::leave once; then O(log ends × RowRoom::may_fit).
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/backfill/row_room.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class RowRooms {
 public:
  // The arguments must outlive this object.
  RowRooms(const Cluster& cluster, const JobBooks& books, const Ends& ends)
      : cluster_{cluster}, books_{books}, ends_{ends} {}

  // Returns false if nothing is known: as recorded, and of select/linear, which counts jobs and not
  // cores. The other questions REQUIRE that it returns true.
  bool knows() const;
  // The books have changed.
  void forget() { rooms_.clear(); }

  struct Asked {
    PartitionIndex partition;
    const NodeSet& nodes;
    const Needs& needs;
  };
  // Returns false if the job does not fit while all are there.
  bool may_fit_now(const Asked& asked);
  // Returns how many must be gone at least, whichever nodes of the partition are in question; one
  // more than there are ends if all are too few. REQUIRES: not may_fit_now(); the ends are read.
  std::size_t least_gone_in_partition(const Asked& asked);
  // Returns the same for the nodes in question, and if more must be gone than end by `until`, one
  // more than end by then. `least`: it is known to be no fewer.
  std::size_t least_gone(const Asked& asked, std::size_t least,
                         std::optional<base::Instant> until);
  // Returns true if the room changes when this job is stopped, or must end: what is known counts
  // jobs as if they stayed until their ends.
  static bool counts(const Asked& asked, const Job& job, bool must_end);

 private:
  struct OfPartition {
    RowRoom room;  // of the allocated jobs, and of the ends that were looked at
    std::map<Needs, std::optional<std::size_t>> least;  // on all nodes; nullopt = more than 0
  };
  OfPartition& of(PartitionIndex partition);
  const NodeSet& all_nodes(const Asked& asked) const {
    return cluster_.partition(asked.partition).nodes;
  }
  bool may_fit(RowRoom& room, const Asked& asked, std::size_t gone) const;
  std::size_t search(RowRoom& room, const Asked& asked, std::size_t least) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  const Ends& ends_;
  std::map<PartitionIndex, OfPartition> rooms_;
};

}  // namespace sched
