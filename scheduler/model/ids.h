// The kinds of numbers that the scheduler uses. Indexes are dense and stable for the life of what
// they name; they are never shown to a user (names are).
#pragma once

#include <cstdint>

#include "base/strong_int.h"

namespace sched {

// Index into Cluster's node table. Stable while the node exists. The *order* of nodes in Slurm's
// sense (consecutive nodes, 4.4.4) is the natural sort of their names, not this index.
using NodeIndex = base::StrongInt<struct NodeIndexTag, std::int32_t>;
using PartitionIndex = base::StrongInt<struct PartitionIndexTag, std::int32_t>;
using QosIndex = base::StrongInt<struct QosIndexTag, std::int32_t>;
using AssociationIndex = base::StrongInt<struct AssociationIndexTag, std::int32_t>;

// The job's number, as SLURM_JOB_ID: dense, given by the caller, never reused.
using JobId = base::StrongInt<struct JobIdTag, std::int64_t>;

// Slurm's 32-bit scheduling priority; 0 = held (R9.1).
using Priority = base::StrongInt<struct PriorityTag, std::uint32_t>;

// Slurm's unit of memory. Kubernetes quantities are rounded up to it at the edge.
using MemoryMiB = base::StrongInt<struct MemoryMiBTag, std::int64_t>;

}  // namespace sched
