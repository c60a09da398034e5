#include "scheduler/backfill/needs.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/asked_product.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/place/sharing.h"
#include "scheduler/select/memory_demand.h"

namespace sched {
namespace {

int clamped(std::int64_t cpus) {
  return static_cast<int>(std::min<std::int64_t>(cpus, kAskedMax));
}

}  // namespace

const JobNeeds::Hardware& JobNeeds::most_in(PartitionIndex partition) {
  const std::uint64_t version = cluster_.configuration_version();
  if (std::exchange(version_, version) != version) most_.clear();
  if (most_.size() <= partition.index()) most_.resize(partition.index() + 1);
  Hardware& most = most_[partition.index()];
  if (most.threads > 0) return most;
  most.threads = 1;
  for (const NodeIndex node : cluster_.partition(partition).nodes_ranked) {
    const NodeSpec& spec = cluster_.node(node);
    most.cpus = std::max(most.cpus, spec.cpus);
    most.threads = std::max(most.threads, spec.cpus / std::max(1, spec.cores()));
  }
  return most;
}

// 1. In all: the CPUs of its tasks.
// 2. On each node: those of the tasks that it must have there, and the CPUs that the other nodes
//    cannot have.
// 3. Memory, where it is managed.
//
// For example, 10 tasks of 2 CPUs on 2 to 3 nodes of 8 CPUs, of one thread to a core: it needs 20
// cores in all. The two other nodes give 16 CPUs at most, so each node must give 4, though a task
// needs only 2. A bound for each node is worth much: by it OpenRoom tells when a node counts at
// all, and without it a node with two free cores would.
//
// Two nodes with 4 cores each do not bring 20 together, so here `each_is_enough` is false, and the
// sum must be watched as well.
Needs JobNeeds::of(const Job& job, PartitionIndex index) {
  const JobRequest& asked = *job.request;
  const NodeCounts counts = node_counts(cluster_, asked, index);
  const Partition& partition = cluster_.partition(index);
  const Hardware& most = most_in(index);
  const auto in_cores = [threads = most.threads](std::int64_t cpus) {
    return (cpus + threads - 1) / threads;
  };
  Needs needs{.nodes_min = counts.min, .nodes_max = std::max(counts.min, counts.max)};
  const int of_task = asked.overcommit ? 1 : std::max(1, asked.cpus_per_task);  // 1
  const std::int64_t cpus =
      asked.overcommit ? counts.min : std::int64_t{tasks_of(asked, counts.min)} * of_task;
  needs.cores = in_cores(cpus);
  const int tasks = asked.overcommit ? 1 : std::max(1, asked.tasks_per_node.value_or(1));  // 2
  const std::int64_t others = std::int64_t{needs.nodes_max - 1} * most.cpus;
  const int cpus_of_node =
      clamped(std::max<std::int64_t>({1, asked_product(of_task, tasks), cpus - others}));
  const auto cores_of_node = static_cast<int>(in_cores(cpus_of_node));
  const bool whole =
      resolve_sharing(cluster_.parameters().select, partition, asked.sharing).whole_nodes;
  needs.each = {
      .cores = whole ? 0 : cores_of_node,
      .cpus = whole ? 0 : cpus_of_node,
      .memory = memory_demand(cluster_.parameters(), partition.config, asked).memory};  // 3
  const CountedDemand& memory = needs.each.memory;
  if (memory.per == CountedPer::kCpu) needs.memory = memory.charge(clamped(cpus), 0);
  needs.each_is_enough = needs.cores <= std::int64_t{needs.nodes_min} * cores_of_node &&
                         needs.memory <= needs.nodes_min * memory.charge(needs.each.cpus, 0);
  return needs;
}

}  // namespace sched
