#include "scheduler/select/cons_tres/capacity.h"

#include <algorithm>

namespace sched::cons_tres {
namespace {

// Steps 4 and 5. As recorded, neither whole tasks nor --ntasks-per-node limit what is offered. They
// only decide if the node offers anything at all. The choice among nodes and the layout of tasks
// handle the rest.
int limit_to_tasks(const Shape& shape, const NodeFacts& facts, int cpus) {
  if (shape.one_task_per_core) {  // no two of them begin on one core
    const int per_core = cpus_per_core(shape, facts);
    // CPUs of the cores that one task takes whole. The rest of its last core is lost.
    const int of_task = quotient_up(shape.cpus_per_task, per_core) * per_core;
    if (of_task > shape.cpus_per_task) cpus = cpus / of_task * shape.cpus_per_task;
  }
  const int tasks = cpus / shape.cpus_per_task;
  if (tasks < 1 || cpus < shape.node_cpus) return 0;
  if (shape.overcommit) return cpus;
  if (tasks < shape.tasks_per_node) return 0;
  if (shape.one_node && tasks * shape.cpus_per_task < shape.min_cpus) return 0;
  return cpus;
}

// Step 6: as many of these CPUs as the free memory, in MiB, pays for. Memory per node is there or
// not. Memory per CPU is charged for whole cores or sockets, which is what the job will hold, so
// CPUs are given up by that unit.
int limit_to_memory(const Shape& shape, const NodeFacts& facts, int cpus, std::int64_t free) {
  switch (shape.memory.per) {
    case CountedPer::kNothing:
    case CountedPer::kWholeNode:  // verification checks that no other job is there
      return cpus;
    case CountedPer::kNode:
      return shape.memory.amount <= free ? cpus : 0;
    case CountedPer::kCpu:
      break;
  }
  if (cpus == 0) return 0;
  if (shape.whole_nodes) {  // charged for every CPU of the node
    return shape.memory.charge(facts.cpus_count(), facts.memory_mib) <= free ? cpus : 0;
  }
  if (shape.unit == SelectUnit::kCpu) {
    cpus = static_cast<int>(std::min<std::int64_t>(cpus, free / shape.memory.amount));
  } else {
    // Charged for whole cores or sockets, whatever part of the last one its tasks use.
    const int per_core = cpus_per_core(shape, facts);
    const int unit = shape.unit == SelectUnit::kSocket ? facts.cores_per_socket : 1;
    const std::int64_t price = shape.memory.amount * charged_per_core(shape, facts);
    // Cores are given up one by one, or socket by socket, until their memory fits (step 6).
    int cores = quotient_up(cpus, per_core);
    cores = quotient_up(cores, unit) * unit;
    while (cores > 0 && cores * price > free) cores -= unit;
    cpus = std::min(cpus, cores * per_core);
  }
  // A task that has lost a CPU to the memory cannot run: whole tasks only.
  cpus -= cpus % shape.cpus_per_task;
  if (cpus < std::max(shape.tasks_per_node, 1) * shape.cpus_per_task) return 0;
  if (shape.one_node && !shape.overcommit && cpus < shape.min_cpus) return 0;
  return cpus;
}

}  // namespace

// 4.6 steps 1 and 2.
CoreSet usable_cores(const Shape& shape, const NodeFacts& facts, const CoreSet& free) {
  if (shape.unit != SelectUnit::kSocket && shape.cores_per_socket <= 1) return free;
  CoreSet usable = free;
  for (int socket = 0; socket < facts.sockets; ++socket) {
    const CoreSet cores =
        core_range(socket * facts.cores_per_socket, (socket + 1) * facts.cores_per_socket);
    // CR_Socket: one used core makes the socket unusable.
    const bool taken = shape.unit == SelectUnit::kSocket && !free.contains(cores);
    if (taken || (free & cores).count() < shape.cores_per_socket) usable -= cores;
  }
  return usable;
}

// For shapes that look at no single socket (Shape::counts_suffice()): steps 3 to 6 from the number
// of free cores.
int usable_cpus(const Shape& shape, const NodeFacts& facts, int free_cores,
                std::int64_t free_memory) {
  const int cpus = free_cores * cpus_per_core(shape, facts);
  if (cpus == 0) return 0;
  return limit_to_memory(shape, facts, limit_to_tasks(shape, facts, cpus), free_memory);
}

// 4.6 from free cores to CPUs.
//
// 1, 2. Drop sockets that the job cannot use, and require as many usable ones as it asks for.
// 3. Count the CPUs of the cores that are left, as far as tasks per socket allow.
//    MaxCPUsPerNode caps them by what the partition's jobs hold already.
// 4, 5. Whole tasks, and enough of them on the node.
// 6. As many as the free memory can pay for.
int usable_cpus(const Shape& shape, const NodeView& node) {
  const NodeFacts& facts = node.facts;
  if (shape.counts_suffice()) {
    return usable_cpus(shape, facts, node.free.count(), node.free_memory);
  }
  const CoreSet free = usable_cores(shape, facts, node.free);
  const int per_core = cpus_per_core(shape, facts);
  const int most = cores_per_socket_max(shape, facts);
  int cpus = 0, sockets = 0;
  for (int socket = 0; socket < facts.sockets; ++socket) {
    const int here =
        (free & core_range(socket * facts.cores_per_socket, (socket + 1) * facts.cores_per_socket))
            .count();
    if (here == 0) continue;
    ++sockets;
    // --ntasks-per-socket caps what a socket gives.
    cpus += std::min(here, most) * per_core;
  }
  if (cpus == 0 || sockets < shape.sockets_per_node) return 0;
  if (shape.max_cpus_per_node != kNoLimit) {
    // Counted in whole cores, as these are charged.
    const int left = shape.max_cpus_per_node - node.own_used.count() * facts.threads;
    if (left <= 0 || (shape.whole_nodes && left < facts.cpus_count())) return 0;
    cpus = std::min(cpus, left);
  }
  return limit_to_memory(shape, facts, limit_to_tasks(shape, facts, cpus), node.free_memory);
}

}  // namespace sched::cons_tres
