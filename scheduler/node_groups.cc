#include "scheduler/node_groups.h"

#include <algorithm>

namespace sched {
namespace {

bool same_configuration(const NodeSpec& a, const NodeSpec& b) {
  return a.sockets == b.sockets && a.cores_per_socket == b.cores_per_socket &&
         a.threads_per_core == b.threads_per_core && a.cpus == b.cpus && a.memory == b.memory &&
         a.tmp_disk == b.tmp_disk && a.weight == b.weight && a.features == b.features;
}

}  // namespace

void NodeGroups::rebuild(const Cluster& cluster) {
  groups_.clear();
  up_ = cluster.no_nodes();
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    const NodeSpec& spec = cluster.spec_at(rank);
    if (spec.state == NodeState::kUp) up_.set(rank);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const NodeGroup& candidate) {
      return same_configuration(candidate.sample, spec);
    });
    if (group == groups_.end()) {
      groups_.push_back({spec, cluster.no_nodes()});
      group = groups_.end() - 1;
    }
    group->nodes.set(rank);
  }
  std::stable_sort(groups_.begin(), groups_.end(), [](const NodeGroup& a, const NodeGroup& b) {
    return a.sample.weight < b.sample.weight;
  });
}

bool group_fits(const NodeSpec& node, const JobRequest& request) {
  int cpus = std::max(request.cpus_per_task, request.min_cpus_per_node.value_or(1));
  if (request.tasks_per_node) {
    cpus = std::max(cpus, *request.tasks_per_node * request.cpus_per_task);
  }
  if (request.overcommit) cpus = request.min_cpus_per_node.value_or(1);
  if (node.cpus < cpus || node.tmp_disk < request.tmp_disk) return false;
  if (node.sockets < request.sockets_per_node.value_or(1)) return false;
  if (node.cores_per_socket < request.cores_per_socket.value_or(1)) return false;
  if (node.threads_per_core < request.threads_per_core.value_or(1)) return false;
  if (const auto* memory = std::get_if<MemoryPerNode>(&request.memory)) {
    if (memory->amount > node.memory) return false;
  }
  if (const auto* memory = std::get_if<MemoryPerCpu>(&request.memory)) {
    if (memory->amount > node.memory) return false;
  }
  return true;
}

}  // namespace sched
