// Needs: the least that a job needs of the nodes of a partition, in cores and MiB. All of it is a
// lower bound: nodes that have less cannot hold the job, and nodes that have as much may. Sockets,
// cores for each task and how jobs are stacked are the selector's to judge.
//
// JobNeeds works them out. It keeps the most that a node of each partition has, because CPUs become
// cores by the most threads that any core there has, so that cores stay a lower bound.
//
// Threads: none. Cost: of() O(1), and once for each partition and configuration O(its nodes).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/select/counted.h"

namespace sched {

// Cores and memory (MiB) that are free on a node, or come free there.
struct CoresAndMemory {
  int cores = 0;
  std::int64_t memory = 0;

  void add(const CoresAndMemory& more, int sign) {
    cores += sign * more.cores;
    memory += sign * more.memory;
  }
  friend bool operator==(const CoresAndMemory&, const CoresAndMemory&) = default;
};

// The least that a job needs on each of its nodes.
struct NodeNeeds {
  int cores = 1;  // 0 = all of the node's
  int cpus = 1;   // for which memory is charged; 0 = all of the node's
  CountedDemand memory{};

  int cores_of(const NodeSpec& spec) const { return cores > 0 ? cores : spec.cores(); }
  // Returns true if `free` is enough on this node.
  bool fit(const NodeSpec& spec, const CoresAndMemory& free) const {
    return free.cores >= cores_of(spec) &&
           memory.fits(cpus > 0 ? cpus : spec.cpus, spec.memory.value(), free.memory);
  }
  friend auto operator<=>(const NodeNeeds&, const NodeNeeds&) = default;
};

struct Needs {
  int nodes_min = 1, nodes_max = 1;
  NodeNeeds each{};
  std::int64_t cores = 1;      // in all
  std::int64_t memory = 0;     // in all, if it is charged for each CPU; otherwise 0
  bool each_is_enough = true;  // nodes_min nodes with `each` have that in all
  friend auto operator<=>(const Needs&, const Needs&) = default;
};

class JobNeeds {
 public:
  // `cluster` must outlive this object.
  explicit JobNeeds(const Cluster& cluster) : cluster_{cluster} {}

  Needs of(const Job& job, PartitionIndex partition);

 private:
  // The most that a node of the partition has.
  struct Hardware {
    int cpus = 0;
    int threads = 0;  // of a core; 0 = not looked up yet
  };
  const Hardware& most_in(PartitionIndex partition);

  const Cluster& cluster_;
  std::uint64_t version_ = 0;   // of the configuration that most_ is of
  std::vector<Hardware> most_;  // by PartitionIndex
};

}  // namespace sched
