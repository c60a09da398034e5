// Layout: tasks to nodes, then cores on each node (4.11), and the memory that goes with them (5).
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/model/job.h"
#include "scheduler/select/cons_tres/choose.h"
#include "scheduler/select/cons_tres/device_limits.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/shape.h"

namespace sched::cons_tres {

// How many tasks a node gets (4.11 steps 1 and 2).
struct NodeTasks {
  int tasks = 0;
  int cpus = 0;  // of those tasks
};
// `devices`: of each of the nodes; empty if the job asks for none.
std::vector<NodeTasks> distribute_tasks(const Shape& shape, const std::vector<Chosen>& chosen,
                                        const std::vector<DeviceLimits>& devices,
                                        const Occupancy& occupancy);

// Step 3: picks cores for `cpus` CPUs out of `free`; nullopt if they do not suffice.
std::optional<CoreSet> pick_cores(const Shape& shape, const NodeFacts& node, const CoreSet& free,
                                  int cpus);

// Returns on how many sockets of the node these cores are.
int sockets_with(const NodeFacts& node, const CoreSet& cores);

// Steps 4 and 5, and R5.5. CPUs and memory of a node follow from its cores; nullopt if there is too
// little memory. `free_memory`: what other jobs have left there. `cores_max`: the most that a job
// with devices picks among.
std::optional<NodeAllocation> allocate_node(const Shape& shape, const NodeFacts& node,
                                            const CoreSet& free, int cores_max,
                                            const NodeTasks& tasks, std::int64_t free_memory);

}  // namespace sched::cons_tres
