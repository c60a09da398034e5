#include "scheduler/place/node_groups.h"

#include <algorithm>

#include "scheduler/model/asked_product.h"

namespace sched {

// Cost: O(nodes × groups). Groups are few: a cluster has some kinds of machines, and each is one.
void NodeGroups::rebuild() {
  groups_.clear();
  features_.reset();
  up_ = cluster_.no_nodes();
  const int count = cluster_.node_count();
  memory_floor_ = count > 0 ? cluster_.spec_at(0).memory.value() : 0;
  tmp_disk_floor_ = count > 0 ? cluster_.spec_at(0).tmp_disk : MemoryMiB{0};
  for (int rank = 0; rank < count; ++rank) {
    const NodeSpec& spec = cluster_.spec_at(rank);
    lower_floors(spec);
    if (spec.state == NodeState::kUp) up_.set(rank);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const NodeGroup& candidate) {
      return same_hardware(candidate.sample, spec);
    });
    if (group == groups_.end()) {
      groups_.push_back({spec, cluster_.no_nodes()});
      group = groups_.end() - 1;
    }
    group->nodes.set(rank);
  }
  // Stable, so that groups of one weight keep the order of their first nodes.
  std::stable_sort(groups_.begin(), groups_.end(), [](const NodeGroup& a, const NodeGroup& b) {
    return a.sample.weight < b.sample.weight;
  });
  ++version_;
  log_.forget();
}

// Floors only sink until the next rebuild. A floor that is too low costs a comparison node by node;
// one that is too high would be wrong.
void NodeGroups::lower_floors(const NodeSpec& node) {
  memory_floor_ = std::min(memory_floor_, node.memory.value());
  tmp_disk_floor_ = std::min(tmp_disk_floor_, node.tmp_disk);
}

// Hardware and weight are part of the topology, so the node stays in its group.
void NodeGroups::node_changed(int rank) {
  const NodeSpec& spec = cluster_.spec_at(rank);
  up_.assign(rank, spec.state == NodeState::kUp);
  features_.node_changed(rank);
  lower_floors(spec);
  log_.note(rank);
}

// 4.2 step 2 without memory and disk, which can change on one node and are compared by
// capacity_fits(). A failure holds for all nodes of the group, on an empty cluster, too.
bool hardware_fits(const NodeSpec& node, const JobRequest& request, const MemoryDemand& memory) {
  const int per_task = asked_product(request.cpus_per_task, memory.task_factor);
  // Memory per CPU above the configured limit is met by more CPUs (MemoryDemand), which the node
  // must have, too.
  int need = std::max(request.min_cpus_per_node.value_or(1), memory.node_cpus);
  if (!request.overcommit) {
    need = std::max(need, asked_product(per_task, request.tasks_per_node.value_or(1)));
  }
  int usable = node.cpus;
  if (request.tasks_per_core) {
    usable = std::min(usable, asked_product(node.cores(), *request.tasks_per_core, per_task));
  }
  return need <= usable && request.sockets_per_node.value_or(1) <= node.sockets &&
         request.cores_per_socket.value_or(1) <= node.cores_per_socket &&
         request.threads_per_core.value_or(1) <= node.threads_per_core;
}

}  // namespace sched
