// How much memory a job asks for, before limits change it (1.8 items 1 to 4).
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/job.h"

namespace sched {

// Returns the memory that the request names, else the partition's default, else the cluster's.
// Defaults are not merged: a partition that sets one of the two hides both of the cluster. Nothing
// = all memory of its nodes.
MemoryRequest memory_asked(const MemoryRequest& asked, const MemoryLimit& of_partition,
                           const MemoryLimit& of_cluster);

}  // namespace sched
