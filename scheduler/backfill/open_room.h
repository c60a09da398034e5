// OpenRoom: the most that each node has for one more job as the allocated jobs end one after the
// other, and when that is what a job needs on it at least ("is ripe"); worked out as far as it is
// asked for, and kept for all jobs that need as much on each node.
//
// Two ways to count what is open:
//   all jobs        where no two jobs share a core: a core is open if no job holds it.
//   one partition   where jobs are stacked: a core is open if fewer jobs of the partition hold it
//                   than it has rows (R4.8). That is an upper bound: the selector judges how rows
//                   are packed, and the cores of other partitions.
// Memory is shared by all rows and all partitions.
//
// Threads: none. Cost: the constructor O(nodes + ends), of one partition O(cores of the allocated
// jobs); then O(nodes of the job), or its cores, for each end that is passed, once; first_enough()
// O(nodes that are ripe by then).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class OpenRoom {
 public:
  // `gone`: the number of ends, in their order, with which it is so.
  struct Node {
    int rank;
    std::size_t gone;
  };
  // The gain of a ripe node; the first one is all that is free there.
  struct Gain {
    int rank;
    CoresAndMemory more;
    std::size_t gone;
    std::size_t ripe;  // the number of nodes that are, with this one
  };
  // With as many gone, the first `count` ripe nodes have what a job needs at least.
  struct Enough {
    std::size_t gone = 0;
    std::size_t count = 0;
  };
  // Counts the jobs of a partition, or with nullopt all jobs. The arguments must outlive this
  // object; valid until the ends or the books change. REQUIRES: the ends are read; of one partition
  // they need not be until they are asked about.
  OpenRoom(const Cluster& cluster, const JobBooks& books, const Ends& ends, const NodeNeeds& needs,
           std::optional<PartitionIndex> partition);

  bool counts_all() const { return !partition_; }
  // Returns the node that is ripe as the index-th with `most` ends gone or fewer; null if no more
  // nodes are. Valid until the next call.
  const Node* node(std::size_t index, std::size_t most = SIZE_MAX) {
    while (index >= order_.size() && may_add_end(most)) add_end();
    return index < order_.size() && order_[index].gone <= most ? &order_[index] : nullptr;
  }
  // Returns when it is ripe.
  base::Instant at(const Node& node) const { return ends_.after(node.gone); }
  // Returns the index-th gain, likewise.
  const Gain* gain(std::size_t index, std::size_t most) {
    while (index >= gains_.size() && may_add_end(most)) add_end();
    return index < gains_.size() && gains_[index].gone <= most ? &gains_[index] : nullptr;
  }
  // Returns the first number of ends with which as many of these nodes are ripe as the job needs,
  // and together have the cores and the memory that it needs in all; nullopt if it is more than
  // `most`. With fewer the job does not fit. REQUIRES: needs.each is what this was made for; the
  // ends are read, if `most` is not 0.
  std::optional<Enough> first_enough(const NodeSet& nodes, const Needs& needs, std::size_t most);
  // Returns those of the nodes that are ripe by then with `most` ends gone or fewer, and among the
  // first `count`.
  NodeSet ripe(const NodeSet& nodes, std::size_t count, base::Instant by,
               std::size_t most = SIZE_MAX);
  // Returns true if the room of the partition changes when this job is stopped, or must end.
  static bool counts(PartitionIndex partition, const NodeNeeds& needs, const Job& job,
                     bool must_end) {
    return has_cores_in(job, partition) || (must_end && needs.memory.per != CountedPer::kNothing);
  }

 private:
  static bool has_cores_in(const Job& job, PartitionIndex partition) {
    return !job.user_suspended && job.partition == partition;
  }
  bool may_add_end(std::size_t most) const {
    return next_end_ < most && next_end_ < ends_.all().size();
  }
  bool is_enough(int rank) const;
  void add_ripe(int rank);
  void add_end();
  template <typename Visit>
  void change(const Job& job, int delta, const Visit& visit);

  const Cluster& cluster_;
  const Ends& ends_;
  const NodeNeeds needs_;
  std::vector<CoresAndMemory> free_;  // by rank; kRipe cores on a node that is in order_
  std::size_t next_end_ = 0;          // of the ends
  std::vector<Node> order_;
  std::vector<Gain> gains_;
  std::optional<PartitionIndex> partition_;  // whose jobs are counted; with one:
  int rows_ = 1;
  std::vector<std::size_t> first_;   // by rank: the first of the node's cores in jobs_; and the end
  std::vector<std::uint16_t> jobs_;  // that hold the core
};

}  // namespace sched
