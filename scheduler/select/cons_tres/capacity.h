// Capacity: how many CPUs one node offers to a job (4.6). Pure.
#pragma once

#include <cstdint>

#include "scheduler/select/cons_tres/node_facts.h"
#include "scheduler/select/cons_tres/shape.h"

namespace sched::cons_tres {

struct NodeView {
  const NodeFacts& facts;
  const CoreSet& free;       // cores that this attempt may take
  const CoreSet& own_used;   // cores that jobs of the same partition hold (MaxCPUsPerNode)
  std::int64_t free_memory;  // MiB
};

// 0 = the node cannot be used. Cost: O(sockets) where the shape looks at sockets, else O(1).
int usable_cpus(const Shape& shape, const NodeView& node);

// Returns the same from the number of free cores. REQUIRES: shape.counts_suffice().
int usable_cpus(const Shape& shape, const NodeFacts& facts, int free_cores,
                std::int64_t free_memory);

// Returns the free cores that the job may really use: without sockets that are unusable for it (4.6
// steps 1 and 2).
CoreSet usable_cores(const Shape& shape, const NodeFacts& facts, const CoreSet& free);

}  // namespace sched::cons_tres
