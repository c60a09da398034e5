// RowRoom: how many cores each node has at most for one more job of a partition, where jobs may be
// stacked, as the allocated jobs leave one after the other. Whichever rows the jobs of the
// partition are in, a core that as many of them hold as there are rows is in none of them free
// (R4.8). The rest is an upper bound: the selector judges how rows are packed and cores of other
// partitions. Memory is shared by all rows and all partitions.
//
// Kept is how the number of open cores of a node grew, so that a question about any number of jobs
// gone looks at the nodes in question alone, where the selector would have to pack the rows.
//
// Cost: the constructor O(cores); enter and leave O(cores of the job); may_fit O(nodes × log jobs
// on a node).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/backfill/needs.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class RowRoom {
 public:
  // Without jobs. `cluster` must outlive this and stay as it is.
  RowRoom(const Cluster& cluster, PartitionIndex partition);

  // Adds an allocated job. If it is in another partition, or its user
  // has suspended it, only its memory counts. REQUIRES: none has left
  // yet.
  void enter(const Job& job);
  // Takes the next one away. REQUIRES: it has entered, or does not count.
  void leave(const Job& job);
  std::size_t gone_count() const { return gone_count_; }
  // Returns the most cores of the node that are free in a row when `gone` are gone. REQUIRES: they
  // are.
  int open_cores(int rank, std::size_t gone) const;

  // Returns false if a job with these needs does not fit on these nodes when `gone` are gone. True
  // promises nothing. With more of them gone it is not false again. REQUIRES: as many are gone.
  bool may_fit(const NodeSet& nodes, const Needs& needs, std::size_t gone) const;
  // Returns true if the job's cores count in the room of the partition.
  static bool counts_cores(const Job& job, PartitionIndex partition) {
    return !job.user_suspended && job.partition == partition;
  }

 private:
  // The node's open cores, and the memory (MiB) that jobs hold, from a number of jobs gone on.
  struct Open {
    std::size_t gone;
    int cores;
    std::int64_t held = 0;
  };
  template <typename Count>
  void change(const Job& job, int delta, const Count& count);
  const Open& open_at(int rank, std::size_t gone) const;

  const Cluster& cluster_;
  const PartitionIndex partition_;
  const int rows_;
  std::vector<std::size_t> first_;  // by rank: the first of the node's cores in jobs_; and the end
  std::vector<std::uint16_t> jobs_;      // that hold the core
  std::vector<std::vector<Open>> open_;  // by rank, ascending; the first is of none gone
  std::size_t gone_count_ = 0;
};

}  // namespace sched
