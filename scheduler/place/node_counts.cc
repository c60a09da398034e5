#include "scheduler/place/node_counts.h"

#include <algorithm>

#include "scheduler/limits/limit_scope.h"
#include "scheduler/model/asked_product.h"

namespace sched {
namespace {

constexpr int kNodesMax = 500'000;  // a job that names no maximum (4.1)

// Returns MaxTRES=node of the QOS or of the account; a range of node counts ends there (4.1).
std::optional<std::int64_t> max_nodes(const Cluster& cluster, const JobRequest& request,
                                      const QosConfig* qos, PartitionIndex partition) {
  const LimitScope scope{
      .cluster = cluster,
      .qos = qos_order(cluster, qos, partition),
      .association = cluster.accounts().find_user(request.user, request.account)};
  if (scope.is_empty()) return std::nullopt;
  return scope.first(
      [](const Limits& of) -> const auto& { return of.job_tres[Tres::kNode]; }, true,
      [](const LimitHolder&, std::int64_t most) { return std::optional{most}; });
}

}  // namespace

// Returns the bounds of 4.1 in their order. A minimum above the maximum is not corrected: the
// caller refuses the job with the reason that belongs to the bound.
//
// For example, "-N2-4" in a partition with MaxNodes=3 has min 2, max 3 and req 3.
NodeCounts node_counts(const Cluster& cluster, const JobRequest& request,
                       PartitionIndex partition) {
  const PartitionConfig& config = cluster.partition(partition).config;
  const QosConfig* const qos = qos_named(cluster, request.qos);
  NodeCounts counts;
  counts.min = std::max(1, request.min_nodes);
  // QOS flags PartitionMinNodes and PartitionMaxNodes waive the partition's bounds.
  if (!(qos && qos->partition_min_nodes)) counts.min = std::max(counts.min, config.min_nodes);
  // Tasks per node ask for at least this many nodes (R4.23).
  if (request.tasks && request.tasks_per_node) {
    counts.min = std::max(counts.min, quotient_up(*request.tasks, *request.tasks_per_node));
  }
  counts.max = request.max_nodes.value_or(kNodesMax);
  if (config.max_nodes && !(qos && qos->partition_max_nodes)) {
    counts.max = std::min(counts.max, *config.max_nodes);
  }
  if (const auto most = max_nodes(cluster, request, qos, partition)) {
    counts.max = static_cast<int>(std::min<std::int64_t>(counts.max, *most));
  }
  // A range "-N2-4" aims at 4 nodes and accepts 2; --use-min-nodes aims at the least.
  const bool explicit_max =
      request.nodes_given && request.max_nodes.has_value() && !request.use_min_nodes;
  counts.req = explicit_max ? std::max(counts.min, counts.max) : counts.min;
  return counts;
}

}  // namespace sched
