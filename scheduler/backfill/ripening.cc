#include "scheduler/backfill/ripening.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sched {
namespace {

// Marks a node that is ripe in place of its free cores, which are not counted any longer. No node
// that ripens later can have so few.
constexpr int kRipe = std::numeric_limits<int>::min();

}  // namespace

// The ends count memory from 0 down, as what jobs hold; here it is what is free, if the job asks
// for any: to look it up fetches each node from memory. Nodes that have enough already are ripe
// now, in the order of their ranks.
Ripening::Ripening(const Cluster& cluster, const Ends& ends, const NodeNeeds& needs)
    : cluster_{cluster}, ends_{ends}, needs_{needs}, free_{ends.free()} {
  const bool counts_memory = needs.memory.per != CountedPer::kNothing;
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    if (counts_memory) {
      free_[static_cast<std::size_t>(rank)].memory += cluster.spec_at(rank).memory.value();
    }
    if (is_enough(rank)) add_ripe(rank, ends.now());
  }
}

bool Ripening::is_enough(int rank) const {
  return needs_.fit(cluster_.spec_at(rank), free_[static_cast<std::size_t>(rank)]);
}

// A node ripens once.
void Ripening::add_ripe(int rank, base::Instant at) {
  CoresAndMemory& free = free_[static_cast<std::size_t>(rank)];
  order_.push_back({rank, at});
  gains_.push_back({rank, free, at, order_.size()});
  free.cores = kRipe;
}

// The next job ends.
void Ripening::add_end() {
  const Ends::End& end = ends_.all()[next_end_++];
  const base::Instant at = ends_.guess(end);
  ends_.for_each_node(end, [&](int rank, const CoresAndMemory& freed) {
    CoresAndMemory& free = free_[static_cast<std::size_t>(rank)];
    if (free.cores == kRipe) return gains_.push_back({rank, freed, at, order_.size()});
    free.add(freed, 1);
    if (is_enough(rank)) add_ripe(rank, at);
  });
}

// Two conditions, each necessary, and the later one decides:
//
// 1. As many of these nodes are ripe as the job needs at least.
// 2. The ripe ones have together what it needs in all. On nodes that are not ripe the job has
//    nothing, so only the gains of ripe ones count: what was free when they became ripe, and what
//    jobs have left there since.
//
// For example, a job wants 2 nodes or more, 4 cores on each and 12 in all. Nodes a and b are ripe
// at 10:00 with 4 cores each: (1) holds. At 10:30 a job leaves 4 more cores on a: (2) holds, and
// the answer is 10:30 with 2 nodes.
Ripening::Enough Ripening::first_enough(const NodeSet& nodes, const Needs& needs) {
  Enough enough;
  int missing = needs.nodes_min;
  for (std::size_t i = 0; enough.count == 0; ++i) {
    const Node* const ripe = node(i);
    if (ripe == nullptr) return enough;
    if (nodes.test(ripe->rank) && --missing <= 0) enough = {ripe->at, i + 1};
  }
  // Mostly these have enough in all with that, and it need not be counted.
  if (needs.each_is_enough) return enough;
  std::int64_t cores = 0, memory = 0;
  for (std::size_t i = 0; cores < needs.cores || memory < needs.memory; ++i) {
    const Gain* const gained = gain(i);
    if (gained == nullptr) return {};
    if (!nodes.test(gained->rank)) continue;
    cores += gained->more.cores;
    memory += gained->more.memory;
    enough.at = std::max(enough.at, gained->at);
    enough.count = std::max(enough.count, gained->ripe);
  }
  return enough;
}

NodeSet Ripening::ripe(const NodeSet& nodes, const Enough& enough) {
  NodeSet ripe = cluster_.no_nodes();
  for (std::size_t i = 0; i < enough.count; ++i) {
    const Node* const next = node(i);
    if (next == nullptr || next->at > enough.at) break;
    if (nodes.test(next->rank)) ripe.set(next->rank);
  }
  return ripe;
}

}  // namespace sched
