#include "scheduler/pass/availability.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sched {

Availability::Availability(const Cluster& cluster, const NodeSet& up)
    : cluster_{cluster}, up_{up}, count_in_(static_cast<std::size_t>(cluster.partition_slots())) {}

void Availability::add_claim(const Job& job) {
  NodeSet nodes = cluster_.no_nodes();
  for (const NodeAllocation& use : job.claim->nodes) {
    if (cluster_.exists(use.node)) nodes.set(cluster_.rank(use.node));
  }
  add_claim(job, std::move(nodes));
}

// A claim has one tier, though the preemptor may wait in several partitions.
void Availability::add_claim(const Job& job, NodeSet nodes) {
  Claim claim{.job = &job, .tier = 0, .nodes = std::move(nodes)};
  // It runs there, and waits for room to go on (T11).
  if (job.allocated()) claim.tier = cluster_.partition(*job.partition).tier();
  // The highest tier in which the preemptor waits counts: it may start in that partition.
  for (const QueueRecord& record : job.queued.in) {
    claim.tier = std::max(claim.tier, cluster_.partition(record.partition).tier());
  }
  claims_.push_back(std::move(claim));
}

void Availability::drop_claim(const Job& job) {
  std::erase_if(claims_, [&](const Claim& claim) { return claim.job == &job; });
}

// Takes away what was withheld since it was last called. Then the counts of all partitions are
// forgotten, since partitions overlap.
const NodeSet& Availability::open_nodes() {
  if (withheld_.empty() && failed_.empty()) return nodes_ ? *nodes_ : up_;
  if (!nodes_) nodes_ = up_;
  for (const NodeSet& nodes : withheld_) *nodes_ -= nodes;
  for (const PartitionIndex partition : failed_) *nodes_ -= cluster_.partition(partition).nodes;
  withheld_.clear();
  failed_.clear();
  std::fill(count_in_.begin(), count_in_.end(), std::nullopt);
  return *nodes_;
}

Availability::View Availability::view(const Job& job, PartitionIndex partition) {
  const Partition& where = cluster_.partition(partition);
  const NodeSet& open = open_nodes();
  if (claims_.empty()) {
    // The usual case: without claims all jobs see the same nodes, and the count of a partition
    // holds until nodes are withheld again.
    std::optional<int>& count = count_in_[partition.index()];
    if (!count) count = open.count_and(where.nodes);
    return {open, *count};
  }
  // Claims make each job see nodes of its own, so nothing can be kept from one job to the next.
  with_claims_ = open;
  for (const Claim& claim : claims_) {
    // The claim wins over partitions that have failed. Otherwise a job ahead that cannot start
    // either would keep the claimant from the nodes for which its victims have just ended.
    if (claim.job == &job) {  // jobs that failed before it did not withhold these from it
      with_claims_ |= claim.nodes & up_;
    } else if (where.tier() <= claim.tier) {
      with_claims_ -= claim.nodes;
    }
  }
  return {with_claims_, with_claims_.count_and(where.nodes)};
}

}  // namespace sched
