// Random small clusters, jobs and changes of configuration for property tests. Everything follows
// from the generator that is given; all configurations are legal.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "scheduler/model/config.h"
#include "scheduler/model/job.h"
#include "scheduler/model/node.h"

namespace sched::testing {

struct RandomWorld {
  Configuration configuration;
  std::vector<NodeSpec> nodes;
};

// select/linear or select/cons_tres with any unit, with and without memory; none, partition_prio or
// QOS preemption in every legal mode; one to three partitions; with or without GANG. With
// multifactor any weights and flags.
RandomWorld random_world(base::Prng& prng, SelectType select,
                         PriorityType priority = PriorityType::kBasic);
// Returns a request that fits the world's names, as of `now`; some can never run.
JobRequest random_request(base::Prng& prng, JobId id, const RandomWorld& world, base::Instant now);
// Likewise as a user submits it now: with dependencies on jobs before it, and every fourth as an
// array. `delays`: some of the dependencies have one. When a job got its nodes is stored only until
// it is ready, and of a task that has ended not at all, so a new leader sees delays end later.
JobRequest random_submission(base::Prng& prng, JobId id, const RandomWorld& world,
                             base::Instant now, bool delays);
// Another legal configuration for the same nodes: tiers, shares, modes, states, limits, slice,
// gang, a partition more or less. The selector, its unit and memory stay.
Configuration random_change(base::Prng& prng, const RandomWorld& world);
// Returns the node in another state, or with more memory.
NodeSpec random_change(base::Prng& prng, NodeSpec node);

}  // namespace sched::testing
