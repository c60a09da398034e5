#include "scheduler/backfill/open_room.h"

#include <algorithm>
#include <limits>

#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

// Marks a node that is ripe in place of its free cores, which are not counted any longer. No node
// that ripens later can have so few.
constexpr int kRipe = std::numeric_limits<int>::min();

// Under preempt/qos every partition has one row more (R7.26).
int rows_of(const Cluster& cluster, PartitionIndex partition) {
  const bool extra = cluster.parameters().preempt_type == PreemptType::kQos;
  return std::max(1, cluster.partition(partition).max_share) + (extra ? 1 : 0);
}

}  // namespace

// Memory is what is free if the job asks for any; otherwise less than 0, what jobs hold: to look it
// up fetches each node from memory. Nodes that have enough already are ripe now, in the order of
// their ranks.
OpenRoom::OpenRoom(const Cluster& cluster, const JobBooks& books, const Ends& ends,
                   const NodeNeeds& needs, std::optional<PartitionIndex> partition)
    : cluster_{cluster}, ends_{ends}, needs_{needs}, partition_{partition}, first_(1) {
  const bool counts_memory = needs.memory.per != CountedPer::kNothing;
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    const NodeSpec& spec = cluster.spec_at(rank);
    free_.push_back({.cores = spec.cores(), .memory = counts_memory ? spec.memory.value() : 0});
    if (partition) first_.push_back(first_.back() + static_cast<std::size_t>(spec.cores()));
  }
  const auto hold = [&](int sign) {
    return [this, sign](int rank, const CoresAndMemory& held) {
      free_[static_cast<std::size_t>(rank)].add(held, sign);
    };
  };
  if (partition) {
    rows_ = rows_of(cluster, *partition);
    jobs_.resize(first_.back());
    for (const auto& [order, job] : books.allocated()) {
      if (!job->completing()) change(*job, +1, hold(+1));
    }
  } else {
    for (const Ends::End& end : ends.all()) ends.for_each_node(end, hold(-1));
  }
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    if (is_enough(rank)) add_ripe(rank);
  }
}

bool OpenRoom::is_enough(int rank) const {
  return needs_.fit(cluster_.spec_at(rank), free_[static_cast<std::size_t>(rank)]);
}

// A node ripens once.
void OpenRoom::add_ripe(int rank) {
  CoresAndMemory& free = free_[static_cast<std::size_t>(rank)];
  order_.push_back({rank, next_end_});
  gains_.push_back({rank, free, next_end_, order_.size()});
  free.cores = kRipe;
}

// Calls visit(rank, more) for each node, with what opens there when the job enters (+1) or leaves
// (-1). A core opens or closes when the last row that has it free is given up or taken.
template <typename Visit>
void OpenRoom::change(const Job& job, int delta, const Visit& visit) {
  const bool has_cores = has_cores_in(job, *partition_);
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    const auto node = static_cast<std::size_t>(rank);
    CoresAndMemory more{.memory = -delta * use.memory.value()};
    for (int core = has_cores ? use.cores.next(0) : -1; core >= 0;
         core = use.cores.next(core + 1)) {
      const std::size_t at = first_[node] + static_cast<std::size_t>(core);
      if (at >= first_[node + 1]) break;
      const int before = jobs_[at];
      jobs_[at] = static_cast<std::uint16_t>(before + delta);
      more.cores += (before + delta < rows_ ? 1 : 0) - (before < rows_ ? 1 : 0);
    }
    visit(rank, more);
  });
}

// The next job ends.
void OpenRoom::add_end() {
  const Ends::End& end = ends_.all()[next_end_++];
  const auto gain = [&](int rank, const CoresAndMemory& more) {
    CoresAndMemory& free = free_[static_cast<std::size_t>(rank)];
    if (free.cores == kRipe) return gains_.push_back({rank, more, next_end_, order_.size()});
    free.add(more, 1);
    if (is_enough(rank)) add_ripe(rank);
  };
  if (partition_) {
    change(*end.job, -1, gain);
  } else {
    ends_.for_each_node(end, gain);
  }
}

// Two conditions, each necessary, and the later one decides:
//
// 1. As many of these nodes are ripe as the job needs at least.
// 2. The ripe ones have together what it needs in all. On nodes that are not ripe the job has
//    nothing, so only the gains of ripe ones count: what was free when they became ripe, and what
//    jobs have left there since.
//
// For example, a job wants 2 nodes or more, 4 cores on each and 12 in all. Nodes a and b are ripe
// with the third end and 4 cores each: (1) holds. With the fifth a job leaves 4 more cores on a:
// (2) holds, and the answer is 5 ends and 2 nodes.
std::optional<OpenRoom::Enough> OpenRoom::first_enough(const NodeSet& nodes, const Needs& needs,
                                                       std::size_t most) {
  Enough enough;
  int missing = needs.nodes_min;
  for (std::size_t i = 0; enough.count == 0; ++i) {
    const Node* const ripe = node(i, most);
    if (ripe == nullptr) return std::nullopt;
    if (nodes.test(ripe->rank) && --missing <= 0) enough = {ripe->gone, i + 1};
  }
  // Mostly these have enough in all with that, and it need not be counted.
  if (needs.each_is_enough) return enough;
  std::int64_t cores = 0, memory = 0;
  for (std::size_t i = 0; cores < needs.cores || memory < needs.memory; ++i) {
    const Gain* const gained = gain(i, most);
    if (gained == nullptr) return std::nullopt;
    if (!nodes.test(gained->rank)) continue;
    cores += gained->more.cores;
    memory += gained->more.memory;
    enough.gone = std::max(enough.gone, gained->gone);
    enough.count = std::max(enough.count, gained->ripe);
  }
  return enough;
}

NodeSet OpenRoom::ripe(const NodeSet& nodes, std::size_t count, base::Instant by,
                       std::size_t most) {
  NodeSet ripe = cluster_.no_nodes();
  for (std::size_t i = 0; i < count; ++i) {
    const Node* const next = node(i, most);
    if (next == nullptr || at(*next) > by) break;
    if (nodes.test(next->rank)) ripe.set(next->rank);
  }
  return ripe;
}

}  // namespace sched
