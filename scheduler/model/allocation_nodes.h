// The nodes of an allocation that still exist, by rank. A node may be removed while jobs hold it;
// selectors keep no books of such nodes.
#pragma once

#include <algorithm>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/model/node_set.h"

namespace sched {

// Calls visit(rank, use) for each node of the allocation that exists, in node order.
template <typename Visit>
void for_each_rank(const Cluster& cluster, const Allocation& allocation, const Visit& visit) {
  for (const NodeAllocation& use : allocation.nodes) {
    if (cluster.exists(use.node)) visit(cluster.rank(use.node), use);
  }
}

inline NodeSet ranks_of(const Cluster& cluster, const Allocation& allocation) {
  NodeSet ranks = cluster.no_nodes();
  for_each_rank(cluster, allocation, [&](int rank, const NodeAllocation&) { ranks.set(rank); });
  return ranks;
}

// Returns how many nodes of the allocation are in `nodes`.
inline int count_nodes_in(const Cluster& cluster, const Allocation& allocation,
                          const NodeSet& nodes) {
  int count = 0;
  for_each_rank(cluster, allocation,
                [&](int rank, const NodeAllocation&) { count += nodes.test(rank) ? 1 : 0; });
  return count;
}

// Returns true if any node of the allocation is in `nodes`.
inline bool has_node_in(const Cluster& cluster, const Allocation& allocation,
                        const NodeSet& nodes) {
  return std::any_of(allocation.nodes.begin(), allocation.nodes.end(),
                     [&](const NodeAllocation& use) {
                       return cluster.exists(use.node) && nodes.test(cluster.rank(use.node));
                     });
}

}  // namespace sched
