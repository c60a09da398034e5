#include "scheduler/pass/availability.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched {

Availability::Availability(const Cluster& cluster, const NodeSet& up, const JobBooks& books,
                           base::Instant now)
    : cluster_{cluster},
      up_{up},
      books_{books},
      now_{now},
      count_in_(static_cast<std::size_t>(cluster.partition_slots())) {}

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

Availability::View Availability::view(const Job& job, PartitionIndex partition,
                                      std::optional<base::Duration> length) {
  const Partition& where = cluster_.partition(partition);
  const NodeSet& open = open_nodes();
  if (books_.claimants().empty()) {
    // The usual case: without claims all jobs see the same nodes, and the count of a partition
    // holds until nodes are withheld again.
    std::optional<int>& count = count_in_[partition.index()];
    if (!count) count = open.count_and(where.nodes);
    return {open, *count};
  }
  // Claims make each job see nodes of its own, so nothing can be kept from one job to the next.
  if (!calendar_) calendar_.emplace(cluster_, books_, base::kNever).read_claims(now_);
  const base::Instant end = length ? now_ + *length : base::kNever;
  with_claims_ = open;
  const NodeCalendar::Who who{.job = job.id, .tier = where.tier()};
  with_claims_ -= calendar_->claimed_from(who, end);
  claimed_ = calendar_->claimed_from(who, base::kNever);
  // The claim wins over partitions that have failed. Otherwise a job ahead that cannot start either
  // would keep the claimant from the nodes for which its victims have just ended.
  if (job.claim) {
    const NodeSet own = ranks_of(cluster_, *job.claim) & up_;
    with_claims_ |= own;
    claimed_ -= own;
  }
  return {with_claims_, with_claims_.count_and(where.nodes), &claimed_};
}

}  // namespace sched
