// Of which QOS a job's limits are: a partition's QOS comes before the job's own, unless the job's
// has OverPartQOS; what the first one leaves open the second one says (1.2, 1.4).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "scheduler/model/cluster.h"

namespace sched {

// In the order in which they count; null where there is none. Cost: O(QOS).
using QosOrder = std::array<const QosConfig*, 2>;

inline QosOrder qos_order(const Cluster& cluster, std::string_view job_qos,
                          PartitionIndex partition) {
  const auto config = [&](std::string_view name) -> const QosConfig* {
    const auto index = name.empty() ? std::nullopt : cluster.find_qos(name);
    return index ? &cluster.qos(*index) : nullptr;
  };
  const QosConfig* const own = config(job_qos);
  const QosConfig* const of_partition = config(cluster.partition(partition).config.qos);
  if (own == of_partition) return {own, nullptr};
  if (own != nullptr && own->over_part_qos) return {own, of_partition};
  return {of_partition, own};
}

// Whose limit of this kind counts; null when nobody has one.
template <typename Limit>
const QosConfig* qos_with(const QosOrder& order, Limit QosConfig::*limit) {
  for (const QosConfig* const qos : order) {
    if (qos != nullptr && qos->*limit) return qos;
  }
  return nullptr;
}

}  // namespace sched
