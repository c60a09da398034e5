// The conditions of a partition for a job that wants to wait for it (3.2 step 5): access, state,
// and the limits of the partition and of the QOS on a single job. Limits on what jobs hold together
// are checked at the start (limits/).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"

namespace sched {

struct Refusal {
  Reason reason;
  std::string message;                      // one sentence for users
  std::optional<base::Instant> until = {};  // when it ends by itself
};

// Returns the existing partitions that the request names, each once, in its order; the default
// partition if it names none.
std::vector<PartitionIndex> partitions_of(const Cluster& cluster, const JobRequest& request);

// Returns the first refusal, in the order of the gates; nullopt if the job may wait for the
// partition. Pure.
std::optional<Refusal> refused_by_partition(const Cluster& cluster, const JobRequest& request,
                                            PartitionIndex partition);

}  // namespace sched
