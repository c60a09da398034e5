// MemoryDemand: what a job asks of its nodes' memory in one partition, with defaults and limits
// applied (1.8). Pure.
#pragma once

#include <cstdint>

#include "scheduler/model/config.h"
#include "scheduler/model/job.h"
#include "scheduler/select/counted.h"

namespace sched {

struct MemoryDemand {
  CountedDemand memory;  // in MiB; kNothing if memory is not consumable (R5.1)
  // Per CPU or per node, also where memory is not managed: a node with less never fits (4.2).
  std::int64_t mib = 0;
  // Step 6: memory above a limit per CPU takes more CPUs, even if memory is not managed.
  int task_factor = 1;  // as many times the CPUs per task
  int node_cpus = 1;    // on each node at least
  // Charged for each GPU that the job gets, and then for nothing else (R11.9).
  std::int64_t mib_per_gpu = 0;
};

MemoryDemand memory_demand(const ClusterParameters& cluster, const PartitionConfig& partition,
                           const JobRequest& asked);

}  // namespace sched
