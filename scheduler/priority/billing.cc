#include "scheduler/priority/billing.h"

#include <algorithm>

#include "scheduler/place/node_counts.h"

namespace sched {
namespace {

constexpr std::int64_t kMilli = 1000;

// 1.8 items 1 to 4: what the request or the defaults say; nothing = whole nodes.
MemoryRequest memory_asked(const Cluster& cluster, const JobRequest& request,
                           const PartitionConfig& partition) {
  if (!std::holds_alternative<std::monostate>(request.memory)) return request.memory;
  const MemoryLimit& own = partition.default_memory;
  const MemoryLimit& chosen =
      own.per_cpu || own.per_node ? own : cluster.parameters().default_memory;
  if (chosen.per_cpu) return MemoryPerCpu{*chosen.per_cpu};
  if (chosen.per_node) return MemoryPerNode{*chosen.per_node};
  return {};
}

// Returns the mean over the partition's nodes: before a placement it is not known which of them the
// job gets.
std::int64_t memory_of_a_node(const Cluster& cluster, const Partition& partition) {
  std::int64_t sum = 0;
  for (const NodeIndex node : partition.nodes_ranked) sum += cluster.node(node).memory.value();
  const auto count = static_cast<std::int64_t>(partition.nodes_ranked.size());
  return count == 0 ? 0 : sum / count;
}

}  // namespace

TresCounts requested(const Cluster& cluster, const JobRequest& request, PartitionIndex index) {
  const Partition& partition = cluster.partition(index);
  const int nodes_count = node_counts(cluster, request, index).min;
  TresCounts counts;
  counts[Tres::kNode] = nodes_count;
  counts[Tres::kCpu] = std::int64_t{tasks_of(request, nodes_count)} * request.cpus_per_task;
  const MemoryRequest memory = memory_asked(cluster, request, partition.config);
  if (const auto* per_cpu = std::get_if<MemoryPerCpu>(&memory)) {
    counts[Tres::kMemory] = per_cpu->amount.value() * counts[Tres::kCpu];
  } else {
    const auto* per_node = std::get_if<MemoryPerNode>(&memory);
    // --mem=0 asks for all memory of each node (R5.3).
    const bool all = per_node == nullptr || per_node->amount.value() == 0;
    const std::int64_t each = all ? memory_of_a_node(cluster, partition) : per_node->amount.value();
    counts[Tres::kMemory] = each * nodes_count;
  }
  return counts;
}

TresCounts held_by(const Cluster& cluster, const Allocation& allocation, PartitionIndex partition) {
  TresCounts held;
  for (const NodeAllocation& use : allocation.nodes) {
    held[Tres::kCpu] += use.cpus;
    held[Tres::kMemory] += use.memory.value();
  }
  held[Tres::kNode] = static_cast<std::int64_t>(allocation.nodes.size());
  held[Tres::kBilling] = billing_milli(cluster, partition, held) / kMilli;
  return held;
}

std::int64_t billing_milli(const Cluster& cluster, PartitionIndex partition,
                           const TresCounts& counts) {
  const auto& weights = cluster.partition(partition).config.billing_weights_micro;
  // Weights are in millionths of a unit, the result in thousandths; hence the division by 1000
  // below.
  if (!weights) return counts[Tres::kCpu] * kMilli;
  std::int64_t sum = 0;
  std::int64_t most = 0;
  for (const Tres kind : {Tres::kCpu, Tres::kMemory, Tres::kNode}) {
    const std::int64_t billed = (*weights)[kind] * counts[kind];
    sum += billed;
    most = std::max(most, billed);
  }
  return (cluster.parameters().priority.max_tres ? most : sum) / 1000;
}

}  // namespace sched
