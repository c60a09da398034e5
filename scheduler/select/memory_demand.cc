#include "scheduler/select/memory_demand.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "scheduler/model/asked_product.h"
#include "scheduler/model/memory_asked.h"

namespace sched {
namespace {

// --mem-per-gpu, or DefMemPerGPU if the job asks for no memory otherwise; 0 = neither, or the job
// has no GPUs.
std::int64_t per_gpu(const ClusterParameters& cluster, const PartitionConfig& partition,
                     const JobRequest& asked) {
  if (cluster.select != SelectType::kConsTres || !asks_for_devices(asked)) return 0;
  if (!std::holds_alternative<std::monostate>(asked.memory)) return 0;
  const Devices least = least_devices(asked);
  if (std::ranges::none_of(least,
                           [](const DeviceCount& each) { return each.kind.name == kGpuName; })) {
    return 0;
  }
  for (const MemoryMiB each :
       {asked.per_gpu.memory, partition.default_per_gpu.memory, cluster.default_per_gpu.memory}) {
    if (each > MemoryMiB{0}) return each.value();
  }
  return 0;
}

}  // namespace

// 1.8 as a whole. The limit per CPU of the partition replaces that of the cluster even where the
// partition only limits memory per node.
// For example, with MaxMemPerCPU=1000 a job of 2,500 MiB for each CPU gets three times the CPUs, of
// 834 MiB each; one of 2,500 MiB for each node gets 3 CPUs at least on each node.
MemoryDemand memory_demand(const ClusterParameters& cluster, const PartitionConfig& partition,
                           const JobRequest& asked) {
  if (const std::int64_t each = per_gpu(cluster, partition, asked); each > 0) {
    return {.memory = {}, .mib_per_gpu = cluster.memory ? each : 0};
  }
  const MemoryRequest amount =
      memory_asked(asked.memory, partition.default_memory, cluster.default_memory);
  const auto* per_cpu = std::get_if<MemoryPerCpu>(&amount);
  const auto* per_node = std::get_if<MemoryPerNode>(&amount);
  MemoryDemand demand;
  std::int64_t& mib = demand.mib;
  mib = per_cpu != nullptr    ? per_cpu->amount.value()
        : per_node != nullptr ? per_node->amount.value()
                              : 0;
  const MemoryLimit& own = partition.max_memory;
  const std::optional<MemoryMiB> most =
      own.per_cpu || own.per_node ? own.per_cpu : cluster.max_memory.per_cpu;
  // Step 6: instead of refusing the job, Slurm gives it as many times the CPUs as it exceeds the
  // limit, so that each CPU keeps within it.
  if (most && most->value() > 0 && mib > most->value()) {
    // A factor that no node can serve has the effect of any larger one.
    const std::int64_t factor = std::min<std::int64_t>(quotient_up(mib, most->value()), kAskedMax);
    if (per_cpu != nullptr) {
      demand.task_factor = static_cast<int>(factor);
      mib = quotient_up(mib, factor);
    } else {
      demand.node_cpus = static_cast<int>(factor);
    }
  }
  if (!cluster.memory) return demand;
  const CountedPer per = mib == 0             ? CountedPer::kWholeNode  // R5.3, --mem=0
                         : per_cpu != nullptr ? CountedPer::kCpu
                                              : CountedPer::kNode;
  demand.memory = {.per = per, .amount = mib};
  return demand;
}

}  // namespace sched
