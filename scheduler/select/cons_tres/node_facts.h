// NodeFacts: what select/cons_tres needs of a node's hardware, by rank. Only the memory
// changes during the life of a selector (one is made per Cluster::topology_version()).
#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/model/core_set.h"
#include "scheduler/model/node.h"

namespace sched::cons_tres {

struct NodeFacts {
  NodeIndex index;
  int sockets = 1;
  int cores_per_socket = 1;
  int threads = 1;  // CPUs per core that exist for jobs: 1 where CPUs counts cores alone
  std::uint32_t weight = 1;
  std::int64_t memory_mib = 0;
  CoreSet cores;  // all of them

  int cores_count() const { return sockets * cores_per_socket; }
  int cpus_count() const { return cores_count() * threads; }
};

// Returns the cores begin … end − 1.
constexpr CoreSet core_range(int begin, int end) {
  return CoreSet::first(end) - CoreSet::first(begin);
}

inline NodeFacts facts_of(NodeIndex index, const NodeSpec& spec) {
  return NodeFacts{.index = index,
                   .sockets = spec.sockets,
                   .cores_per_socket = spec.cores_per_socket,
                   // Slurm's CPUs= may count cores although there are threads; a core then counts
                   // as one CPU.
                   .threads = std::max(1, spec.cpus / std::max(1, spec.cores())),
                   .weight = spec.weight,
                   .memory_mib = spec.memory.value(),
                   .cores = CoreSet::first(spec.cores())};
}

}  // namespace sched::cons_tres
