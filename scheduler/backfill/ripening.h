// Ripening: when each node alone has what a job needs on it at least ("is ripe"), if the allocated
// jobs end as expected; worked out as far as it is asked for, and kept for all jobs that need as
// much. Only where no two jobs share a core, since cores can be counted there alone.
//
// Threads: none. Cost: the constructor O(nodes); then O(nodes of the job) for each end that is
// passed, once; first_enough() O(nodes that are ripe by then).
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Ripening {
 public:
  struct Node {
    int rank;
    base::Instant at;
  };
  // The gain of a ripe node; the first one is all that is free there.
  struct Gain {
    int rank;
    CoresAndMemory more;
    base::Instant at;
    std::size_t ripe;  // the number of nodes that are, with this one
  };
  // The instant at which the first `count` ripe nodes have what a job needs at least.
  struct Enough {
    base::Instant at = base::kNever;
    std::size_t count = 0;
  };
  // The arguments must outlive this object. Valid until the ends' next generation. REQUIRES: the
  // ends are read.
  Ripening(const Cluster& cluster, const Ends& ends, const NodeNeeds& needs);

  // Returns the node that is ripe as the index-th; null if no more nodes ever are. Valid until the
  // next call.
  const Node* node(std::size_t index) {
    while (index >= order_.size() && next_end_ < ends_.all().size()) add_end();
    return index < order_.size() ? &order_[index] : nullptr;
  }
  // Likewise.
  const Gain* gain(std::size_t index) {
    while (index >= gains_.size() && next_end_ < ends_.all().size()) add_end();
    return index < gains_.size() ? &gains_[index] : nullptr;
  }
  // Returns the first instant at which as many of these nodes are ripe as the job needs, and
  // together have the cores and the memory that it needs in all; kNever if there is none. A job
  // cannot start earlier. REQUIRES: needs.each is what this was made for.
  Enough first_enough(const NodeSet& nodes, const Needs& needs);
  // Returns those of the nodes that are ripe by then, and among the first that are enough.
  NodeSet ripe(const NodeSet& nodes, const Enough& enough);

 private:
  bool is_enough(int rank) const;
  void add_ripe(int rank, base::Instant at);
  void add_end();

  const Cluster& cluster_;
  const Ends& ends_;
  const NodeNeeds needs_;
  std::vector<CoresAndMemory> free_;  // by rank; kRipe cores on a node that is in order_
  std::size_t next_end_ = 0;          // of the ends
  std::vector<Node> order_;
  std::vector<Gain> gains_;
};

}  // namespace sched
