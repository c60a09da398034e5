#include "scheduler/model/memory_asked.h"

#include <variant>

namespace sched {

// 1.8 items 1 to 4, in their order.
MemoryRequest memory_asked(const MemoryRequest& asked, const MemoryLimit& of_partition,
                           const MemoryLimit& of_cluster) {
  // A request of 0, which means all memory of a node, is a request, too.
  if (!std::holds_alternative<std::monostate>(asked)) return asked;
  const MemoryLimit& chosen =
      of_partition.per_cpu || of_partition.per_node ? of_partition : of_cluster;
  if (chosen.per_cpu) return MemoryPerCpu{*chosen.per_cpu};
  if (chosen.per_node) return MemoryPerNode{*chosen.per_node};
  return {};
}

}  // namespace sched
