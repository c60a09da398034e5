#include "scheduler/place/node_counts.h"

#include <algorithm>

#include "scheduler/model/qos_order.h"

namespace sched {
namespace {

constexpr int kNodesMax = 500'000;  // a job that names no maximum (4.1)

}  // namespace

NodeCounts node_counts(const Cluster& cluster, const JobRequest& request,
                       PartitionIndex partition) {
  const PartitionConfig& config = cluster.partition(partition).config;
  const QosConfig* const qos = qos_named(cluster, request.qos);
  NodeCounts counts;
  counts.min = std::max(1, request.min_nodes);
  if (!(qos && qos->partition_min_nodes)) counts.min = std::max(counts.min, config.min_nodes);
  if (request.tasks && request.tasks_per_node) {  // R4.23
    const int per_node = *request.tasks_per_node;
    counts.min = std::max(counts.min, (*request.tasks + per_node - 1) / per_node);
  }
  counts.max = request.max_nodes.value_or(kNodesMax);
  if (config.max_nodes && !(qos && qos->partition_max_nodes)) {
    counts.max = std::min(counts.max, *config.max_nodes);
  }
  if (const QosConfig* limits =
          qos_with(qos_order(cluster, qos, partition), &QosConfig::max_nodes_per_job)) {
    counts.max = std::min(counts.max, *limits->max_nodes_per_job);
  }
  const bool explicit_max =
      request.nodes_given && request.max_nodes.has_value() && !request.use_min_nodes;
  counts.req = explicit_max ? std::max(counts.min, counts.max) : counts.min;
  return counts;
}

}  // namespace sched
