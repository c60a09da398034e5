#include "scheduler/jobs/node_usage.h"

#include <algorithm>

#include "scheduler/select/memory_demand.h"

namespace sched {

// All nodes are idle until the allocated jobs are added again; only nodes that take no pods at all
// are full already.
void NodeUsage::reset() {
  nodes_.assign(static_cast<std::size_t>(cluster_.node_slots()), Counters{});
  idle_ = shareable_ = NodeSet::all(cluster_.node_count());
  completing_ = full_ = memory_taken_ = cluster_.no_nodes();
  completing_count_ = owners_count_ = full_count_ = 0;
  for (const NodeIndex node : cluster_.order()) show_full(node);
  log_.forget();
}

void NodeUsage::show(NodeSet& set, int rank, bool member) {
  if (set.test(rank) == member) return;
  set.assign(rank, member);
  log_.note(rank);
}

// nullopt if the node takes any number. A node whose limit was lowered below what it has takes
// none.
std::optional<int> NodeUsage::pods_left(NodeIndex node) const {
  const std::optional<int>& max = cluster_.node(node).pods_max;
  if (!max) return std::nullopt;
  return std::max(0, *max - nodes_[node.index()].pods);
}

// Keeps full_ and the number of its members in step, so that any_full() is free if no node is full,
// which is nearly always.
void NodeUsage::show_full(NodeIndex node) {
  const int rank = cluster_.rank(node);
  const bool is_full = pods_left(node) == 0;
  if (full_.test(rank) == is_full) return;
  show(full_, rank, is_full);
  full_count_ += is_full ? 1 : -1;
}

// Pods of every job on the node, suspended and completing ones too: kubelet counts them until they
// are gone.
void NodeUsage::count_pods(const Job& job, int delta) {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node) && !job.has_left(use.node)) count_pods(job, use, delta);
  }
}

void NodeUsage::count_pods(const Job& job, const NodeAllocation& use, int delta) {
  nodes_[use.node.index()].pods += delta * pods_on(*job.request, use);
  show_full(use.node);
}

// R5.3: the job asked for no memory and no default applies, or for all of it (--mem=0). The
// configuration of the moment decides, not that of the job's start.
bool NodeUsage::takes_all_memory(const Job& job) const {
  const MemoryDemand demand =
      memory_demand(cluster_.parameters(), cluster_.partition(*job.partition).config, *job.request);
  return demand.memory.per == CountedPer::kWholeNode;
}

// For the sentence of a job that waits for such a node, which names the job that has all of the
// memory.
const Job* NodeUsage::memory_holder(NodeIndex node) const {
  const std::vector<const Job*>& jobs = jobs_on(node);
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [this](const Job* job) { return takes_all_memory(*job); });
  return found == jobs.end() ? nullptr : *found;
}

// When a job leaves, the others are looked at and not counted: a default of the configuration may
// have changed what each counts as since it came.
void NodeUsage::show_memory_taken(const Job& job, bool comes) {
  if (comes && !takes_all_memory(job)) return;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    const int rank = cluster_.rank(use.node);
    if (comes) memory_taken_.set(rank);
    if (!comes && memory_taken_.test(rank) && memory_holder(use.node) == nullptr) {
      memory_taken_.reset(rank);
    }
  }
}

bool NodeUsage::owns_nodes(const Job& job, PartitionIndex partition) const {
  return job.request->sharing == Sharing::kUser ||
         cluster_.partition(partition).config.exclusive_user;
}

// A node that was removed under its job has lost its rank; the job keeps it in its allocation.
void NodeUsage::add(const Job& job) {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node)) nodes_[use.node.index()].jobs.push_back(&job);
  }
  show_memory_taken(job, true);
  if (owns_nodes(job, *job.partition)) ++owners_count_;
  count_pods(job, +1);
  count(job, +1);
}

void NodeUsage::remove(const Job& job) {
  count(job, -1);
  count_pods(job, -1);
  if (owns_nodes(job, *job.partition)) --owners_count_;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node)) std::erase(nodes_[use.node.index()].jobs, &job);
  }
  // When the job is no longer among those of its nodes: the others are looked at.
  show_memory_taken(job, false);
}

// A job counts as running or as completing. A suspended one counts as neither: its nodes are idle
// for jobs that may be stacked there (R4.4).
void NodeUsage::count(const Job& job, int delta) {
  if (job.completing()) {
    count_completing(job, delta);
  } else if (job.running()) {
    count_running(job, delta);
  }
}

// Only nodes whose counters reach or leave zero change their places in the sets.
void NodeUsage::count_completing(const Job& job, int delta) {
  completing_count_ += delta;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (cluster_.exists(use.node) && !job.has_left(use.node)) count_completing(use.node, delta);
  }
}

void NodeUsage::count_completing(NodeIndex index, int delta) {
  Counters& node = nodes_[index.index()];
  node.completing += delta;
  const int rank = cluster_.rank(index);
  show(idle_, rank, node.running == 0 && node.completing == 0);
  show(completing_, rank, node.completing > 0);
}

// A job in its grace time still counts as running on all of its nodes, since it has its cores.
void NodeUsage::leave(const Job& job, const std::vector<NodeIndex>& nodes) {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node) || !std::ranges::binary_search(nodes, use.node)) continue;
    count_pods(job, use, -1);
    if (job.completing()) count_completing(use.node, -1);
  }
}

// The job's sharing is that which its start resolved: it must leave the counters as it entered
// them, whatever its partition says now.
void NodeUsage::count_running(const Job& job, int delta) {
  const bool shares = job.sharing.shares_nodes;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    Counters& node = nodes_[use.node.index()];
    node.running += delta;
    const int rank = cluster_.rank(use.node);
    show(idle_, rank, node.running == 0 && node.completing == 0);
    // no_share_job_cnt of 1.3: a single running job that refuses to share closes the node.
    if (shares) continue;
    node.no_share += delta;
    show(shareable_, rank, node.no_share == 0);
  }
}

void NodeUsage::leave_out_refusing(const Job& job, base::Instant now, NodeSet& nodes) const {
  if (now >= job.retry.nodes_until) return;
  for (const NodeIndex node : job.retry.nodes) {
    if (cluster_.exists(node)) nodes.reset(cluster_.rank(node));
  }
}

// Node by node, but only if some job owns its nodes, or this one asks to: restricts() says so in
// advance.
void NodeUsage::restrict_to_user(const Job& job, bool exclusive_user, NodeSet& nodes) const {
  if (!restricts(exclusive_user)) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    if (!open_to_user(job, exclusive_user, cluster_.node_at(rank), nullptr)) nodes.reset(rank);
  }
}

// Jobs of the same user are never in the way. Those of other users are if either side insists on
// being alone.
bool NodeUsage::open_to_user(const Job& job, bool exclusive_user, NodeIndex node,
                             const Job* without) const {
  const std::vector<const Job*>& jobs = jobs_on(node);
  return std::none_of(jobs.begin(), jobs.end(), [&](const Job* other) {
    return other != without && other->request->user != job.request->user &&
           (exclusive_user || owns_nodes(*other, *other->partition));
  });
}

}  // namespace sched
