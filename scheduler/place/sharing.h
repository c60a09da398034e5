// How a job may share nodes in a partition (4.3).
#pragma once

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"

namespace sched {

// Pure. The result is kept with the job only when it starts (R4.2).
SharingStatus resolve_sharing(SelectType select, const Partition& partition, Sharing requested);

}  // namespace sched
