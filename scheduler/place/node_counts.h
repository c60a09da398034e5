// How many nodes a job gets in a partition (4.1).
#pragma once

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"

namespace sched {

struct NodeCounts {
  int min = 1;
  int req = 1;
  int max = 1;
};
// Pure. `min` above `max` means that the partition or a QOS does not allow so many.
NodeCounts node_counts(const Cluster& cluster, const JobRequest& request, PartitionIndex partition);

}  // namespace sched
