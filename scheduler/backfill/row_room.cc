#include "scheduler/backfill/row_room.h"

#include <algorithm>
#include <array>

#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

// Under preempt/qos every partition has one row more (R7.26).
int rows_of(const Cluster& cluster, PartitionIndex partition) {
  const bool extra = cluster.parameters().preempt_type == PreemptType::kQos;
  return std::max(1, cluster.partition(partition).max_share) + (extra ? 1 : 0);
}

}  // namespace

RowRoom::RowRoom(const Cluster& cluster, PartitionIndex partition)
    : cluster_{cluster}, partition_{partition}, rows_{rows_of(cluster, partition)}, first_(1) {
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    const int cores = cluster.spec_at(rank).cores();
    open_.push_back({Open{.gone = 0, .cores = cores}});
    first_.push_back(first_.back() + static_cast<std::size_t>(cores));
  }
  jobs_.resize(first_.back());
}

// A core opens or closes when the last row that has it free is given up or taken. Calls
// count(open, opened, held) for each node on which something changes.
template <typename Count>
void RowRoom::change(const Job& job, int delta, const Count& count) {
  const bool has_cores = counts_cores(job, partition_);
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    const auto node = static_cast<std::size_t>(rank);
    const std::int64_t held = delta * use.memory.value();
    int opened = 0;
    for (int core = has_cores ? use.cores.next(0) : -1; core >= 0;
         core = use.cores.next(core + 1)) {
      const std::size_t at = first_[node] + static_cast<std::size_t>(core);
      if (at >= first_[node + 1]) break;
      const int before = jobs_[at];
      jobs_[at] = static_cast<std::uint16_t>(before + delta);
      opened += (before + delta < rows_ ? 1 : 0) - (before < rows_ ? 1 : 0);
    }
    if (opened != 0 || held != 0) count(open_[node], opened, held);
  });
}

// Jobs that enter are there from the beginning, so they change the entry of none gone.
void RowRoom::enter(const Job& job) {
  change(job, +1, [](std::vector<Open>& open, int opened, std::int64_t held) {
    open.back().cores += opened;
    open.back().held += held;
  });
}

// A node gets an entry only when something changes there, so its list has one for each job that
// leaves it, and open_at() finds by halving how it was with any number of ends gone. So the room
// with fewer of them gone can still be asked about after more have left.
void RowRoom::leave(const Job& job) {
  ++gone_count_;
  change(job, -1, [this](std::vector<Open>& open, int opened, std::int64_t held) {
    const Open& last = open.back();
    open.push_back(
        {.gone = gone_count_, .cores = last.cores + opened, .held = last.held + held});
  });
}

const RowRoom::Open& RowRoom::open_at(int rank, std::size_t gone) const {
  const std::vector<Open>& open = open_[static_cast<std::size_t>(rank)];
  if (open.back().gone <= gone) return open.back();
  return *(std::ranges::upper_bound(open, gone, {}, &Open::gone) - 1);
}

int RowRoom::open_cores(int rank, std::size_t gone) const {
  return open_at(rank, gone).cores;
}

// Takes the nodes that offer most, as many as the job may have, and compares their sum: if these
// are too few, all others are. A node that has too little for its part of the job offers nothing.
// The nodes are counted by what they offer instead of sorted, because a node has few cores and
// nodes are many.
//
// The bound is loose where the jobs of two rows leave different cores: with 2 rows, a node of 4
// cores on which one job holds cores 0 and 1 and another one cores 2 and 3 has 4 open cores,
// whichever rows they are in; if they are in different rows, each row has 2.
bool RowRoom::may_fit(const NodeSet& nodes, const Needs& needs, std::size_t gone) const {
  std::array<int, kCoresPerNodeMax + 1> with{};  // by what they offer: the number of nodes
  int most = 0;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const Open& open = open_at(rank, gone);
    const NodeSpec& spec = cluster_.spec_at(rank);
    if (!needs.each.fit(spec, {open.cores, spec.memory.value() - open.held})) continue;
    ++with[static_cast<std::size_t>(open.cores)];
    most = std::max(most, open.cores);
  }
  int count = 0;
  std::int64_t cores = 0;
  for (int offered = most; offered > 0 && count < needs.nodes_max; --offered) {
    const int taken = std::min(with[static_cast<std::size_t>(offered)], needs.nodes_max - count);
    count += taken;
    cores += std::int64_t{offered} * taken;
  }
  return count >= needs.nodes_min && cores >= needs.cores;
}

}  // namespace sched
