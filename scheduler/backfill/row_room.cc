#include "scheduler/backfill/row_room.h"

#include <algorithm>

#include "base/check.h"
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
    open_.push_back(cluster.spec_at(rank).cores());
    first_.push_back(first_.back() + static_cast<std::size_t>(open_.back()));
  }
  jobs_.resize(first_.back());
}

// A core opens or closes when the last row that has it free is given up or taken.
void RowRoom::change(const Job& job, int delta) {
  if (job.user_suspended || job.partition != partition_) return;
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    const auto node = static_cast<std::size_t>(rank);
    const bool is_counted = count_ != nullptr && count_->nodes_.test(rank);
    if (is_counted) --count_->with_[count_->offer(rank)];
    for (int core = use.cores.next(0); core >= 0; core = use.cores.next(core + 1)) {
      const std::size_t at = first_[node] + static_cast<std::size_t>(core);
      if (at >= first_[node + 1]) break;
      const int before = jobs_[at];
      jobs_[at] = static_cast<std::uint16_t>(before + delta);
      open_[node] += (before + delta < rows_ ? 1 : 0) - (before < rows_ ? 1 : 0);
    }
    if (is_counted) ++count_->with_[count_->offer(rank)];
  });
}

RowRoom::Count::Count(RowRoom& room, const NodeSet& nodes, const Needs& needs)
    : room_{room}, nodes_{nodes}, needs_{needs} {
  CHECK(room.count_ == nullptr);
  room.count_ = this;
  int most = 0;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    most = std::max(most, room.cluster_.spec_at(rank).cores());
  }
  with_.resize(static_cast<std::size_t>(most) + 1);
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) ++with_[offer(rank)];
}

RowRoom::Count::~Count() {
  room_.count_ = nullptr;
  for (const Job* const job : gone_) room_.enter(*job);
}

// Nothing if it is too little for a node.
std::size_t RowRoom::Count::offer(int rank) const {
  const int open = room_.open_cores(rank);
  const int least = needs_.whole ? room_.cluster_.spec_at(rank).cores() : needs_.of_node;
  return open >= least ? static_cast<std::size_t>(open) : 0;
}

void RowRoom::Count::leave(const Job& job) {
  room_.leave(job);
  gone_.push_back(&job);
}

// With the nodes that offer most, as many as the job may have.
bool RowRoom::Count::may_fit() const {
  int nodes = 0;
  std::int64_t cores = 0;
  for (std::size_t offered = with_.size() - 1; offered > 0 && nodes < needs_.nodes_max; --offered) {
    const int taken = std::min(with_[offered], needs_.nodes_max - nodes);
    nodes += taken;
    cores += static_cast<std::int64_t>(offered) * taken;
  }
  return nodes >= needs_.nodes_min && cores >= needs_.cores;
}

}  // namespace sched
