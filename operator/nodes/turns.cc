#include "operator/nodes/turns.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace control {
namespace {

using sched::OverSubscribe;
using sched::PartitionConfig;
using sched::PreemptMode;
using sched::PreemptType;
using Partitions = std::vector<const PartitionConfig*>;

// Slurm's OverSubscribe: EXCLUSIVE gives whole nodes, NO never shares cores, YES and FORCE let up
// to max_share jobs share one core.
bool shares(const PartitionConfig& partition) {
  return partition.over_subscribe == OverSubscribe::kForce ||
         partition.over_subscribe == OverSubscribe::kYes;
}

bool stacks(const PartitionConfig& partition) {
  return shares(partition) && partition.max_share > 1;
}

bool suspends(const sched::ClusterParameters& cluster, const PartitionConfig& partition) {
  return cluster.preempt_type != PreemptType::kNone &&
         partition.preempt_mode.value_or(cluster.preempt_mode) == PreemptMode::kSuspend;
}

// Rule 3, of the partitions of one node.
bool stacks_tiers(const sched::ClusterParameters& cluster, const Partitions& partitions) {
  const auto [lowest, highest] = std::minmax_element(
      partitions.begin(), partitions.end(),
      [](const auto* a, const auto* b) { return a->priority_tier < b->priority_tier; });
  // Jobs of one tier never stop each other, unless they are stacked in one partition.
  if ((*lowest)->priority_tier == (*highest)->priority_tier) return false;
  if (cluster.select == sched::SelectType::kConsTres) return true;
  return std::any_of(partitions.begin(), partitions.end(), [&](const PartitionConfig* one) {
    return shares(*one) || suspends(cluster, *one);
  });
}

// Rule 4.
bool suspends_by_qos(const sched::Configuration& configuration) {
  const sched::ClusterParameters& cluster = configuration.cluster;
  return cluster.preempt_type == PreemptType::kQos &&
         (cluster.preempt_mode == PreemptMode::kSuspend ||
          std::any_of(configuration.qos.begin(), configuration.qos.end(),
                      [](const auto& qos) { return qos.preempt_mode == PreemptMode::kSuspend; }));
}

bool has_shared_nodes(const Partitions& partitions) {
  return std::any_of(partitions.begin(), partitions.end(), [](const PartitionConfig* one) {
    return one->over_subscribe != OverSubscribe::kExclusive;
  });
}

}  // namespace

// Works out, once per configuration, on which nodes jobs may take turns. The rules are numbered in
// turns.h; a node is in possible_ if one of rules 2 to 5 holds there. To err on the side of
// "possible" costs an agent and a timetable that are not needed; to err on the other side would let
// jobs run together that must not.
Turns::Turns(const sched::Configuration& configuration) {
  const sched::ClusterParameters& cluster = configuration.cluster;
  counts_cores_ = cluster.select == sched::SelectType::kConsTres;
  // Rule 1.
  if (!cluster.gang) return;
  // Rule 4. QOS are not bound to partitions, so it holds for every node.
  const bool everywhere = suspends_by_qos(configuration);
  std::map<std::string_view, Partitions> partitions_of;
  // Goes from partitions to nodes: jobs of different partitions meet where their nodes overlap, so
  // each node is judged by all of its partitions together.
  for (const PartitionConfig& partition : configuration.partitions) {
    for (const std::string& node : partition.nodes) partitions_of[node].push_back(&partition);
  }
  for (const auto& [name, partitions] : partitions_of) {
    const std::string node{name};
    const bool some_cores = counts_cores_ && has_shared_nodes(partitions);
    if (some_cores && cluster.task_affinity) bound_.insert(node);
    // Rule 5.
    const bool counts_cpus = some_cores && !cluster.task_affinity;
    // Rule 2.
    const bool stacked = std::any_of(partitions.begin(), partitions.end(),
                                     [](const PartitionConfig* one) { return stacks(*one); });
    if (everywhere || counts_cpus || stacked || stacks_tiers(cluster, partitions)) {
      possible_.insert(node);
    }
  }
}

}  // namespace control
