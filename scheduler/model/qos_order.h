// The QOS whose limits a job has: a partition's QOS comes before the job's own, unless the job's
// has OverPartQOS; limits that the first one leaves open come from the second one (1.2, 1.4).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "scheduler/model/cluster.h"

namespace sched {

// Returns the QOS of that name; null when there is none, as for an empty name. Cost: O(QOS).
inline const QosConfig* qos_named(const Cluster& cluster, std::string_view name) {
  const auto index = cluster.find_qos(name);
  return index ? &cluster.qos(*index) : nullptr;
}

// In the order in which they count; null where there is none. Cost: O(QOS).
using QosOrder = std::array<const QosConfig*, 2>;

// `own`: the job's; may be null.
inline QosOrder qos_order(const Cluster& cluster, const QosConfig* own, PartitionIndex partition) {
  const QosConfig* const of_partition = qos_named(cluster, cluster.partition(partition).config.qos);
  if (own == of_partition) return {own, nullptr};
  if (own != nullptr && own->over_part_qos) return {own, of_partition};
  return {of_partition, own};
}
inline QosOrder qos_order(const Cluster& cluster, std::string_view job_qos,
                          PartitionIndex partition) {
  return qos_order(cluster, qos_named(cluster, job_qos), partition);
}

// Returns the QOS with the limit of this kind that counts; null if neither has one.
template <typename Limit>
const QosConfig* qos_with(const QosOrder& order, Limit QosConfig::*limit) {
  for (const QosConfig* const qos : order) {
    if (qos != nullptr && qos->*limit) return qos;
  }
  return nullptr;
}

}  // namespace sched
