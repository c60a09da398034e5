// The administrator's events: configuration and nodes (6.10).
#include <algorithm>

#include "base/check.h"
#include "scheduler/engine/engine.h"

namespace sched {
namespace {

bool has_node(const Allocation& allocation, NodeIndex node) {
  return std::ranges::find(allocation.nodes, node, &NodeAllocation::node) != allocation.nodes.end();
}

}  // namespace

// Everything that was worked out from the old configuration is made again, from the bottom up:
// nodes, priorities, limits, books, queue, gang. Jobs that run go on, whatever the new
// configuration says about them.
void Engine::on(const Configure& event) {
  const bool gang_before = gang::is_on(cluster_);
  const SchedulerType scheduler_before = cluster_.parameters().scheduler;
  cluster_.configure(*event.configuration);
  cluster_.settle();
  topology_version_ = cluster_.topology_version();
  priorities_.configure();
  resource_limits_.recount();
  priorities_.begin(now_);
  rebuild();
  admission_.release_bad_constraints(now_);
  if (scheduler_before != cluster_.parameters().scheduler) forget_plans();
  turns_->configure();
  if (gang_before || gang::is_on(cluster_)) turns_->rebuild();
  // Tiers decide which jobs are frozen beside a job that is still starting, so its nodes may need
  // new timetables.
  for (const auto& [order, job] : books_.allocated()) {
    if (!job->ready) turns_->mark_nodes(*job);
  }
  books_.changed();
}

// Each kind of scheduler does not know the plans or estimates of the other one.
void Engine::forget_plans() {
  for (const auto& [order, job] : books_.table().all()) {
    if (job->pending()) books_.set_plan(*job, std::nullopt);
  }
}

// Only noted: what follows from the node is made again by the next settle(), because a cluster that
// starts up tells thousands of nodes one after the other.
void Engine::on(const NodeUpdate& event) {
  // The operator refuses nodes that cannot be used; here such a node is left out.
  if (!cluster_.upsert_node(event.node).ok()) return;
  removed_nodes_.erase(event.node.name);
  books_.changed();
}

// A node with jobs stays, in state DOWN, until the last of them is gone.
void Engine::on(const NodeRemove& event) {
  settle();
  const auto node = cluster_.find_node(event.name);
  if (!node) return;
  books_.changed();
  if (books_.usage().jobs_on(*node).empty()) return remove_node(*node);
  // The books name nodes by their indexes, so the node must exist as long as a job holds a part
  // of it.
  NodeSpec down = cluster_.node(*node);
  down.state = NodeState::kDown;
  CHECK(cluster_.upsert_node(down).ok());
  removed_nodes_.insert(event.name);
}

// NodeRemove of a node with jobs leaves it in the books until its last job is gone.
void Engine::remove_empty_nodes() {
  for (auto at = removed_nodes_.begin(); at != removed_nodes_.end();) {
    const auto node = cluster_.find_node(*at);
    if (node && !books_.usage().jobs_on(*node).empty()) {
      ++at;
      continue;
    }
    if (node) {
      finish_priorities();  // as before other changes of nodes (step())
      remove_node(*node);
    }
    at = removed_nodes_.erase(at);
  }
}

// The next new node gets the index, so what waiting jobs know of this one goes: a claim of which a
// node is missing is given up as a whole, and its job competes again.
void Engine::remove_node(NodeIndex node) {
  for (const auto& [order, job] : books_.table().all()) {
    std::erase(job->retry.nodes, node);
    if (!job->pending()) continue;
    if (job->plan && std::ranges::count(job->plan->nodes, node) > 0) {
      books_.set_plan(*job, std::nullopt);
    }
    if (job->claim && has_node(*job->claim, node)) books_.clear_claim(*job, true, now_);
  }
  cluster_.remove_node(std::string{cluster_.node(node).name});
}

// To be called before any event that reads nodes. Changes of hardware give all nodes new ranks, so
// everything that is kept by rank is made again; a node that merely reports other memory, labels or
// state touches that node alone.
void Engine::settle() {
  cluster_.settle();
  const std::vector<NodeIndex> changed = cluster_.take_changed_nodes();
  if (topology_version_ != cluster_.topology_version()) {
    topology_version_ = cluster_.topology_version();
    rebuild();
  } else if (changed.empty()) {
    return;
  }
  for (const NodeIndex node : changed) {
    if (!cluster_.exists(node)) continue;
    groups_.node_changed(cluster_.rank(node));
    books_.node_changed(node);
  }
  admission_.release_bad_constraints(now_);
}

// Bottom up: the queue's gates ask the groups and the books.
void Engine::rebuild() {
  groups_.rebuild();
  books_.reshape();
  admission_.admit_all(now_);
}

}  // namespace sched
