// The part of a node's offer that devices leave (R11.9): a task that finds no device there does not
// start there, and cores beyond those of these tasks are not taken. Pure.
#pragma once

#include <climits>
#include <cstdint>
#include <vector>

#include "scheduler/select/cons_tres/node_facts.h"
#include "scheduler/select/cons_tres/shape.h"

namespace sched::cons_tres {

inline constexpr int kAllCores = INT_MAX;

struct DeviceLimits {
  int cpus = 0;              // that the node offers; 0 = it cannot be used
  int cores = kAllCores;     // the most that the job takes there
  int tasks = INT_MAX;       // the most that find their devices
  std::vector<int> devices;  // that the job can use there, of each of its kinds
  // GPUs that count for the choice: a node with more of them goes first, and one with fewer CPUs
  // and GPUs is the first to be left out.
  int near_gpus = 0;
  int resources = 0;
};

// The free resources of a node, without regard to the job's devices.
struct FreeOnNode {
  int cpus;  // as 4.6 has it
  int cores;
  std::int64_t memory;       // MiB
  std::vector<int> devices;  // of each of the job's kinds
};

DeviceLimits device_limits(const Shape& shape, const NodeFacts& node, const FreeOnNode& free);

}  // namespace sched::cons_tres
