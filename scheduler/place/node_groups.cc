#include "scheduler/place/node_groups.h"

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

bool group_fits(const NodeSpec& node, const JobRequest& request, const MemoryDemand& memory) {
  const int per_task = request.cpus_per_task * memory.task_factor;
  int need = std::max(request.min_cpus_per_node.value_or(1), memory.node_cpus);
  if (!request.overcommit) need = std::max(need, per_task * request.tasks_per_node.value_or(1));
  int usable = node.cpus;
  if (request.tasks_per_core) {
    usable = std::min(usable, node.cores() * *request.tasks_per_core * per_task);
  }
  return need <= usable && request.tmp_disk <= node.tmp_disk &&
         request.sockets_per_node.value_or(1) <= node.sockets &&
         request.cores_per_socket.value_or(1) <= node.cores_per_socket &&
         request.threads_per_core.value_or(1) <= node.threads_per_core &&
         memory.mib <= node.memory.value();
}

}  // namespace sched
