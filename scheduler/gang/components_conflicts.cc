// Finds the jobs that are in conflict, and so must be in one component.
#include "scheduler/gang/components.h"

#include <algorithm>

namespace sched::gang {
namespace {

// Returns false if the two jobs may run at the same time even on common units: those of different
// partitions of one tier cast no shadow on each other (R6.35).
bool related(const Cluster& cluster, const Job& a, const Job& b) {
  return *a.partition == *b.partition ||
         cluster.partition(*a.partition).tier() != cluster.partition(*b.partition).tier();
}

// Returns what the job holds of the node; null if nothing. A selector gives nodes in the order of
// ranks, so a search by halving finds the node; for any other order there is the walk.
const NodeAllocation* use_of(const Cluster& cluster, const Job& job, NodeIndex node) {
  const auto& nodes = job.allocation.nodes;
  const auto is_it = [&](const NodeAllocation& use) { return use.node == node; };
  constexpr std::size_t kFew = 8;
  if (nodes.size() > kFew && cluster.exists(node)) {
    const int rank = cluster.rank(node);
    const auto at = std::partition_point(nodes.begin(), nodes.end(), [&](const auto& use) {
      return cluster.exists(use.node) && cluster.rank(use.node) < rank;
    });
    if (at != nodes.end() && is_it(*at)) return &*at;
  }
  const auto found = std::find_if(nodes.begin(), nodes.end(), is_it);
  return found == nodes.end() ? nullptr : &*found;
}

// Returns true if `job` has units in common with `use` on its node. Where CPUs are counted, whether
// two jobs fit together depends on the others on the node; so all jobs of a node count as sharing
// it, and the lists decide which of them run together.
bool share(const Cluster& cluster, const NodeAllocation& use, const Job& job) {
  const NodeAllocation* const other = use_of(cluster, job, use.node);
  if (other == nullptr) return false;
  switch (unit_of(cluster.parameters())) {
    case Unit::kNode:
    case Unit::kCpuCount:
      return true;
    case Unit::kCore:
      return use.cores.intersects(other->cores);
    case Unit::kSocket:
      break;
  }
  if (!cluster.exists(use.node)) return false;
  const NodeSpec& node = cluster.node(use.node);
  return whole_sockets(use.cores, node).intersects(other->cores);
}

}  // namespace

// Symmetric, and independent of whether the jobs are tracked: also asked of jobs that are not ready
// yet. Walks the nodes of the job that has fewer: this is called once for each node of a wide job.
bool Components::conflicts(const Job& a, const Job& b) const {
  if (!related(cluster_, a, b)) return false;
  const bool a_is_wider = a.allocation.nodes.size() > b.allocation.nodes.size();
  const Job& narrow = a_is_wider ? b : a;
  const Job& wide = a_is_wider ? a : b;
  return std::any_of(narrow.allocation.nodes.begin(), narrow.allocation.nodes.end(),
                     [&](const NodeAllocation& use) { return share(cluster_, use, wide); });
}

// Visits the tracked jobs with which `job` is in conflict, until visit() returns false. A rival on
// several of its nodes is visited for each of them.
template <typename Visit>
void Components::for_each_rival(const Job& job, const Visit& visit) const {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    for (const Job* other : usage_.jobs_on(use.node)) {
      if (other == &job || !other->turn.in_gang || !related(cluster_, job, *other)) continue;
      if (share(cluster_, use, *other) && !visit(*other)) return;
    }
  }
}

std::vector<NodeIndex> nodes_of(const std::vector<const Job*>& jobs) {
  std::vector<NodeIndex> nodes;
  for (const Job* job : jobs) {
    for (const NodeAllocation& use : job->allocation.nodes) {
      // Neighbors in the table are often on one node.
      if (nodes.empty() || nodes.back() != use.node) nodes.push_back(use.node);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Cost: O(jobs on the nodes of `job`), fewer if it has a rival.
bool Components::has_rivals(const Job& job) const {
  bool found = false;
  for_each_rival(job, [&](const Job&) {
    found = true;
    return false;
  });
  return found;
}

// Returns the jobs and components that must be one component when `seed` joins.
//
// 1. Its rivals: each is in a component, or in none (it is "loose").
// 2. The components of all jobs on the nodes of the seed and of these, since no node is in two
//    components.
//
// That leads no further: all rivals of a component's members are its members already, and a loose
// job has no rival but the seed, or it would be in a component.
Components::Closure Components::closure(const Job& seed) const {
  Closure closure;
  for_each_rival(seed, [&](const Job& rival) {  // 1
    if (rival.turn.component == nullptr) closure.loose.push_back(jobs_.find(rival.id));
    return true;
  });
  const auto in_order = [](const Job* a, const Job* b) { return a->table_order < b->table_order; };
  if (!std::is_sorted(closure.loose.begin(), closure.loose.end(), in_order))
    std::sort(closure.loose.begin(), closure.loose.end(), in_order);
  closure.loose.erase(std::unique(closure.loose.begin(), closure.loose.end()), closure.loose.end());
  std::vector<const Job*> jobs{closure.loose.begin(), closure.loose.end()};  // 2
  jobs.push_back(&seed);
  const Component* last = nullptr;
  for (const NodeIndex node : nodes_of(jobs)) {
    if (!cluster_.exists(node)) continue;
    for (const Job* other : usage_.jobs_on(node)) {
      const Component* const component = other->turn.component;
      if (component == nullptr || component == last) continue;
      closure.components.insert(component->upkeep.id);
      last = component;
    }
  }
  return closure;
}

// Returns "" if no two jobs in conflict run at t, by run(t) as published and not by the lists.
// Two dying jobs may run: each of them does until its pods are gone (13.10), and neither waits for
// the end of the other. Where CPUs are counted, whether two jobs fit together depends on the other
// jobs of the node: there the lists alone are checked.
std::string Components::check_run(const Component& component, base::Instant t) const {
  if (component.upkeep.stale || t >= component.projection.known_until) return {};
  if (unit_of(cluster_.parameters()) == Unit::kCpuCount) return {};
  std::vector<std::pair<NodeIndex, const Job*>> running;
  for (const std::uint32_t pod : timetable::run_at(component.projection.timeline, t)) {
    const Job* const job = jobs_.find(component.projection.members[pod]);
    for (const NodeAllocation& use : job->allocation.nodes) running.emplace_back(use.node, job);
  }
  std::sort(running.begin(), running.end(), [](const auto& a, const auto& b) {
    return std::pair{a.first, a.second->table_order} < std::pair{b.first, b.second->table_order};
  });
  for (std::size_t i = 0; i < running.size(); ++i) {
    for (std::size_t j = i + 1; j < running.size() && running[j].first == running[i].first; ++j) {
      const Job &a = *running[i].second, &b = *running[j].second;
      const auto& dying = component.state.dying;
      if (dying.contains(a.id) && dying.contains(b.id)) continue;
      if (conflicts(a, b))
        return "jobs " + to_string(a.id) + " and " + to_string(b.id) + " run at the same time";
    }
  }
  return {};
}

// 1. No component is ahead of time, and each member knows its component.
// 2. No node belongs to two components, rivals are in one, and a job in none has no rival.
// 3. Jobs in conflict do not run at the same time, unless both are dying.
// 4. The lists hold I1 to I5, except between a departure and the boundary that fills its hole: then
// I3 (no job waits that fits) is broken on purpose.
std::string Components::check_invariants(base::Instant now) const {
  std::map<NodeIndex, std::int64_t> component_of;
  for (const auto& [id, component] : components_) {
    if (component->state.base > now) return "a component is ahead of now";
    for (const JobId member : component->projection.members) {
      const Job* job = jobs_.find(member);
      if (job == nullptr || job->turn.component != component.get()) {
        return "job " + to_string(member) + " is lost";
      }
      for (const NodeAllocation& use : job->allocation.nodes) {
        // A node in two components would get its timetable from two rotations.
        const auto [at, is_new] = component_of.emplace(use.node, id);
        if (!is_new && at->second != id)
          return "node " + to_string(use.node) + " is in two components";
      }
      bool together = true;
      for_each_rival(*job, [&](const Job& rival) {
        together = rival.turn.component == job->turn.component;
        return together;
      });
      if (!together) return "a rival of job " + to_string(member) + " is not in its component";
    }
    if (std::string broken = check_run(*component, now); !broken.empty()) return broken;
    const bool in_between =
        std::any_of(component->state.pending.begin(), component->state.pending.end(),
                    [](const PendingOp& op) { return !op.join; });
    if (in_between) continue;  // a hole that waits for its boundary
    if (std::string broken = component->state.lists.check_invariants(); !broken.empty())
      return broken;
  }
  for (const auto& [order, job] : jobs_.all()) {
    if (job->turn.in_gang && job->turn.component == nullptr && has_rivals(*job))
      return "job " + to_string(job->id) + " has a rival, and is in no component";
  }
  return {};
}

}  // namespace sched::gang
