#include "scheduler/priority/billing.h"

#include <algorithm>
#include <vector>

#include "base/product_words.h"
#include "scheduler/model/asked_product.h"
#include "scheduler/model/memory_asked.h"
#include "scheduler/place/node_counts.h"

namespace sched {
namespace {

constexpr std::int64_t kMilli = 1000;

// Returns the mean over the partition's nodes: before a placement it is not known which of them the
// job gets.
std::int64_t memory_of_a_node(const Cluster& cluster, const Partition& partition) {
  std::int64_t sum = 0;
  for (const NodeIndex node : partition.nodes_ranked) sum += cluster.node(node).memory.value();
  const auto count = static_cast<std::int64_t>(partition.nodes_ranked.size());
  return count == 0 ? 0 : sum / count;
}

// Over all nodes, for all tasks or sockets or on each node: the greatest of what the job says.
std::int64_t gpus_asked(const JobRequest& request, int nodes_count, const std::string& type) {
  return std::max({gpus_of(request.devices_of_job, type),
                   gpus_of(request.devices, type) * nodes_count,
                   gpus_of(request.devices_per_task, type) * tasks_of(request, nodes_count),
                   gpus_of(request.devices_per_socket, type) *
                       request.sockets_per_node.value_or(1) * nodes_count});
}

}  // namespace

std::int64_t gpus_of(const Devices& devices, const std::string& type) {
  return count_of(devices, {.name = std::string{kGpuName}, .type = type});
}

void name_gpu_types(const Cluster& cluster, const JobRequest& request, int nodes_count,
                    TresCounts& counts) {
  for (const TresKind& kind : cluster.tres_kinds()) {
    if (kind.gpu_type.empty()) continue;
    counts[kind] = gpus_asked(request, nodes_count, kind.gpu_type);
  }
}

// For the job-size and TRES factors and for limits before nodes are chosen. A lower bound: the job
// may get more nodes than its minimum and more CPUs than its tasks need.
TresCounts requested(const Cluster& cluster, const JobRequest& request, PartitionIndex index) {
  const Partition& partition = cluster.partition(index);
  const int nodes_count = node_counts(cluster, request, index).min;
  TresCounts counts;
  counts[Tres::kNode] = nodes_count;
  counts[Tres::kCpu] = std::int64_t{tasks_of(request, nodes_count)} * request.cpus_per_task;
  const MemoryRequest memory = memory_asked(request.memory, partition.config.default_memory,
                                            cluster.parameters().default_memory);
  if (const auto* per_cpu = std::get_if<MemoryPerCpu>(&memory)) {
    counts[Tres::kMemory] = asked_amount(per_cpu->amount.value(), counts[Tres::kCpu]);
  } else {
    const auto* per_node = std::get_if<MemoryPerNode>(&memory);
    // --mem=0 asks for all memory of each node (R5.3).
    const bool all = per_node == nullptr || per_node->amount.value() == 0;
    const std::int64_t each = all ? memory_of_a_node(cluster, partition) : per_node->amount.value();
    counts[Tres::kMemory] = asked_amount(each, nodes_count);
  }
  if (!asks_for_devices(request)) return counts;
  counts[Tres::kGpu] = gpus_asked(request, nodes_count, {});
  name_gpu_types(cluster, request, nodes_count, counts);
  return counts;
}

// Counts the CPUs of whole nodes. The best fit (4.4) and the job's constraint decide which nodes
// they really are. Only their CPUs count here, and nodes with different ones are rarely mixed in a
// partition.
std::int64_t whole_node_cpus(const Cluster& cluster, const JobRequest& request,
                             PartitionIndex partition, std::int64_t cpus_asked) {
  const int nodes_aimed_at = node_counts(cluster, request, partition).req;
  std::int64_t cpus = 0;
  int nodes_count = 0;
  std::vector<NodeIndex> named;
  for (const std::string& name : request.required_nodes) {
    const auto node = cluster.find_node(name);
    if (!node) continue;
    named.push_back(*node);
    cpus += cluster.node(*node).cpus;
    ++nodes_count;
  }
  for (const NodeIndex node : cluster.partition(partition).nodes_ranked) {
    if (nodes_count >= nodes_aimed_at && cpus >= cpus_asked) break;
    if (std::ranges::find(named, node) != named.end()) continue;
    cpus += cluster.node(node).cpus;
    ++nodes_count;
  }
  return cpus;
}

// Counts the allocation itself, so that a job of whole nodes is billed all CPUs of its nodes.
TresCounts held_by(const Cluster& cluster, const Allocation& allocation, PartitionIndex partition) {
  TresCounts held;
  for (const NodeAllocation& use : allocation.nodes) {
    held[Tres::kCpu] += use.cpus;
    held[Tres::kMemory] += use.memory.value();
  }
  for (const DevicesOnNode& use : allocation.devices) {
    if (use.kind.name != kGpuName) continue;
    for (const TresKind& kind : cluster.tres_kinds()) {
      if (kind.tres != Tres::kGpu) continue;
      if (kind.gpu_type.empty() || base::has_words(use.kind.type, kind.gpu_type)) {
        held[kind] += use.count;
      }
    }
  }
  held[Tres::kNode] = static_cast<std::int64_t>(allocation.nodes.size());
  held[Tres::kBilling] = billing_milli(cluster, partition, held) / kMilli;
  return held;
}

// Without TRESBillingWeights a CPU is a billing unit. With them each kind counts by its weight, or
// with MAX_TRES the dearest kind alone: then a job that takes all memory of a node and few of its
// CPUs can be billed like one that takes the whole node.
std::int64_t billing_milli(const Cluster& cluster, PartitionIndex partition,
                           const TresCounts& counts) {
  const auto& weights = cluster.partition(partition).config.billing_weights_micro;
  // Weights are in millionths of a unit, the result in thousandths; hence the division by 1000
  // below.
  if (!weights) return counts[Tres::kCpu] * kMilli;
  std::int64_t sum = 0;
  std::int64_t most = 0;
  for (const TresKind& kind : cluster.tres_kinds()) {
    if (kind.tres == Tres::kBilling) continue;
    const std::int64_t billed = (*weights)[kind] * counts[kind];
    sum += billed;
    most = std::max(most, billed);
  }
  return (cluster.parameters().priority.max_tres ? most : sum) / 1000;
}

}  // namespace sched
