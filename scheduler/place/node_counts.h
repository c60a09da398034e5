// How many nodes a job gets in a partition (4.1).
#pragma once

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"

namespace sched {

// `min` and `max` are bounds; of the numbers between them `req` is the one that placements aim at.
// Where neither the job nor a limit names a maximum it is 500,000, as in Slurm.
struct NodeCounts {
  int min = 1;
  int req = 1;
  int max = 1;
};
// Pure. `min` above `max` means that the partition or a QOS does not allow as many.
NodeCounts node_counts(const Cluster& cluster, const JobRequest& request, PartitionIndex partition);

}  // namespace sched
