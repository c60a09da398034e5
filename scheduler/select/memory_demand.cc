#include "scheduler/select/memory_demand.h"

#include <optional>
#include <variant>

namespace sched {
namespace {

std::int64_t quotient_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

// Steps 1 to 4: the request, else the partition's default, else the cluster's.
MemoryLimit amount_of(const ClusterParameters& cluster, const PartitionConfig& partition,
                      const MemoryRequest& asked) {
  if (const auto* per_cpu = std::get_if<MemoryPerCpu>(&asked)) {
    return {.per_cpu = per_cpu->amount, .per_node = {}};
  }
  if (const auto* per_node = std::get_if<MemoryPerNode>(&asked)) {
    return {.per_cpu = {}, .per_node = per_node->amount};
  }
  const MemoryLimit& own = partition.default_memory;
  return own.per_cpu || own.per_node ? own : cluster.default_memory;
}

}  // namespace

MemoryDemand memory_demand(const ClusterParameters& cluster, const PartitionConfig& partition,
                           const MemoryRequest& asked) {
  const MemoryLimit amount = amount_of(cluster, partition, asked);
  MemoryDemand demand;
  std::int64_t& mib = demand.mib;
  mib = amount.per_cpu ? amount.per_cpu->value() : amount.per_node ? amount.per_node->value() : 0;
  const MemoryLimit& own = partition.max_memory;
  const std::optional<MemoryMiB> most =
      own.per_cpu || own.per_node ? own.per_cpu : cluster.max_memory.per_cpu;
  // Step 6: instead of refusing the job, Slurm gives it as many times the CPUs as it exceeds the
  // limit, so that each CPU keeps within it.
  if (most && most->value() > 0 && mib > most->value()) {
    const std::int64_t factor = quotient_up(mib, most->value());
    if (amount.per_cpu) {
      demand.task_factor = static_cast<int>(factor);
      mib = quotient_up(mib, factor);
    } else {
      demand.node_cpus = static_cast<int>(factor);
    }
  }
  if (!cluster.memory) return demand;
  const CountedPer per = mib == 0         ? CountedPer::kWholeNode  // R5.3, --mem=0
                         : amount.per_cpu ? CountedPer::kCpu
                                          : CountedPer::kNode;
  demand.memory = {.per = per, .amount = mib};
  return demand;
}

}  // namespace sched
