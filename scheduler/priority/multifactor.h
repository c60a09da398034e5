// Multifactor priorities (R9.3): a job's priority in a partition is the sum of its factors, each
// multiplied by its weight, less its nice value.
//
// A factor is 0 to 1, in billionths, unless a flag says that it is not normalized. Everything is
// worked out from the configuration, the request and the fair-share factor of its user: pure.
//
// Cost: O(1), plus what it takes to read node counts and memory of the request.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/model/tres.h"
#include "scheduler/priority/priority_views.h"

namespace sched {

// The totals that factors are parts of; they change with the configuration and the nodes.
struct PriorityTotals {
  PriorityTotals() = default;
  explicit PriorityTotals(const Cluster& cluster);

  std::int64_t nodes_count = 0;
  std::int64_t cpus_count = 0;
  std::int64_t partition_factor_max = 0;
  std::int64_t qos_priority_max = 0;
  std::int64_t association_priority_max = 0;
  std::vector<TresCounts> of_partition;  // by PartitionIndex; 0 for a removed one
};

// `was_tested`: the size of the job is that of a placement (Job::was_tested). `waited`: how long
// the job has been eligible; not more than PriorityMaxAge counts. `fair_share`: its user's factor.
PriorityFactors priority_factors(const Cluster& cluster, const PriorityTotals& totals,
                                 const JobRequest& request, PartitionIndex partition,
                                 bool was_tested, base::Duration waited,
                                 std::int64_t fair_share_ppb, std::uint32_t association_priority);

// Returns 1 to 2^32 − 1 (R9.1). The fraction of the sum is cut off, not that of each term.
Priority weighted_sum(const PriorityParameters& parameters, const PriorityFactors& factors,
                      std::int32_t nice);

// Returns the same in parts, in millionths: what changes with the time alone, and the rest.
std::int64_t age_term(const PriorityParameters& parameters, base::Duration waited);
std::int64_t fair_share_term(const PriorityParameters& parameters, std::int64_t fair_share_ppb);
std::int64_t other_terms(const PriorityParameters& parameters, const PriorityFactors& factors,
                         std::int32_t nice);
Priority priority_of_sum(std::int64_t millionths);

}  // namespace sched
