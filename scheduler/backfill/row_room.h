// RowRoom: how many cores each node has at most for one more job of a partition, where jobs may be
// stacked. Whichever rows the jobs of the partition are in, a core that as many of them hold as
// there are rows is in none of them free (R4.8). What is left is an upper bound: how rows are
// packed, cores of other partitions and memory are the selector's to judge.
//
// A Count asks if a job may fit on some nodes as others leave. It costs an addition for each core
// of these, where the selector would have to pack the rows.
//
// Cost: the constructor O(cores); enter and leave O(cores of the job); a Count O(nodes) and what
// leaves while it lives, twice; may_fit O(cores of a node).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class RowRoom {
 public:
  // Without jobs. `cluster` must outlive this and stay as it is.
  RowRoom(const Cluster& cluster, PartitionIndex partition);

  // An allocated job. One of another partition, or one that its user has suspended, does not count.
  void enter(const Job& job) { change(job, +1); }
  // REQUIRES: it has entered.
  void leave(const Job& job) { change(job, -1); }
  // Cores of the node that are free in a row at most.
  int open_cores(int rank) const { return open_[static_cast<std::size_t>(rank)]; }

  // The least that a job needs, and the most nodes that it takes.
  struct Needs {
    int nodes_min = 1, nodes_max = 1;
    int of_node = 1;         // cores on each node
    bool whole = false;      // all cores of each node instead
    std::int64_t cores = 1;  // in all
  };
  // One at a time. Its end brings all jobs back.
  class Count {
   public:
    // The arguments must outlive this object.
    Count(RowRoom& room, const NodeSet& nodes, const Needs& needs);
    ~Count();
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;

    void leave(const Job& job);
    // False: the job does not fit on these nodes. True promises nothing.
    bool may_fit() const;

   private:
    friend class RowRoom;
    std::size_t offer(int rank) const;

    RowRoom& room_;
    const NodeSet& nodes_;
    const Needs needs_;
    std::vector<int> with_;  // by the number of cores that a node offers: so many of the nodes
    std::vector<const Job*> gone_;
  };

 private:
  void change(const Job& job, int delta);

  const Cluster& cluster_;
  const PartitionIndex partition_;
  const int rows_;
  std::vector<std::size_t> first_;  // by rank: the first of the node's cores in jobs_; and the end
  std::vector<std::uint16_t> jobs_;  // that hold the core
  std::vector<int> open_;            // by rank
  Count* count_ = nullptr;           // that lives
};

}  // namespace sched
