// The trackable resources that a job asks for or holds, and what it is billed for them.
#pragma once

#include <cstdint>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/model/tres.h"

namespace sched {

// Returns the least that the job asks for in the partition: CPUs of its tasks, nodes, memory.
// Without a request and without defaults its memory is that of whole nodes (1.8). `billing` is left
// at 0.
TresCounts requested(const Cluster& cluster, const JobRequest& request, PartitionIndex partition);

// Returns the CPUs of the nodes that select/linear would give the job on an empty partition: those
// that it names, then the first ones until there are as many nodes as it aims at and the CPUs that
// it asks for (requested()). Cost: O(these nodes).
std::int64_t whole_node_cpus(const Cluster& cluster, const JobRequest& request,
                             PartitionIndex partition, std::int64_t cpus_asked);

// Returns how many GPUs there are of the type, of any if it is empty.
std::int64_t gpus_of(const Devices& devices, const std::string& type);

// Sets the GPUs of the types that limits and weights name, as the job asks for them on
// `nodes_count` nodes: one that names no type asks for none of these (recorded,
// rnd_gpulimits_112911), though it holds some later.
void name_gpu_types(const Cluster& cluster, const JobRequest& request, int nodes_count,
                    TresCounts& counts);

// Returns what the allocation holds; `billing` in whole units, rounded down.
TresCounts held_by(const Cluster& cluster, const Allocation& allocation, PartitionIndex partition);

// Thousandths of billing units for these resources: TRESBillingWeights of the partition, summed,
// or with MAX_TRES the dearest kind; without weights the CPUs.
std::int64_t billing_milli(const Cluster& cluster, PartitionIndex partition,
                           const TresCounts& counts);

}  // namespace sched
