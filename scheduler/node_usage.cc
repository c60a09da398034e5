#include "scheduler/node_usage.h"

#include <algorithm>

namespace sched {

void NodeUsage::reset() {
  nodes_.assign(static_cast<std::size_t>(cluster_.node_slots()), Counters{});
  idle_ = shareable_ = NodeSet::all(cluster_.node_count());
  completing_ = cluster_.no_nodes();
  owners_count_ = 0;
}

bool NodeUsage::owns_nodes(const Job& job) const {
  return job.request.sharing == Sharing::kUser ||
         cluster_.partition(*job.partition).config.exclusive_user;
}

void NodeUsage::add(const Job& job) {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node)) nodes_[use.node.index()].jobs.push_back(&job);
  }
  if (owns_nodes(job)) ++owners_count_;
  count(job, +1);
}

void NodeUsage::remove(const Job& job) {
  count(job, -1);
  if (owns_nodes(job)) --owners_count_;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node)) std::erase(nodes_[use.node.index()].jobs, &job);
  }
}

void NodeUsage::count(const Job& job, int delta) {
  const bool completing = job.completing();
  const bool running = job.running() && !completing;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    Counters& node = nodes_[use.node.index()];
    if (completing) node.completing += delta;
    if (running) node.running += delta;
    if (running && !job.sharing.shares_nodes) node.no_share += delta;
    const int rank = cluster_.rank(use.node);
    idle_.assign(rank, node.running == 0 && node.completing == 0);
    shareable_.assign(rank, node.no_share == 0);
    completing_.assign(rank, node.completing > 0);
  }
}

void NodeUsage::restrict_to_user(const Job& job, bool exclusive_user, NodeSet& nodes) const {
  if (!exclusive_user && owners_count_ == 0) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    for (const Job* other : jobs_on(cluster_.node_at(rank))) {
      if (other->request.user == job.request.user) continue;
      if (exclusive_user || owns_nodes(*other)) {
        nodes.reset(rank);
        break;
      }
    }
  }
}

}  // namespace sched
