// Shape: a job's request as select/cons_tres works with it, in one partition: defaults and limits
// applied (1.5, 1.8), the sharing class resolved (R4.14). Two jobs of one shape get the same
// answer, so a shape is also the key of what is remembered between two calls.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/select/cons_tres/node_facts.h"
#include "scheduler/select/device_books.h"
#include "scheduler/select/memory_demand.h"
#include "scheduler/select/selector.h"

namespace sched::cons_tres {

// The effect of a job's presence on a node on other jobs there (R4.14, R4.15).
enum class NodeClass : std::uint8_t { kShared, kOneRow, kReserved };
NodeClass class_of(const Partition& partition, const JobRequest& request);

inline constexpr int kNoLimit = 0;  // of the options below that have one

// How many devices of a kind the job wants: on each node, for each task, for each socket on which
// it has cores, over all nodes.
struct KindDemand {
  DeviceKind kind;
  int per_node = 0, per_task = 0, per_socket = 0, of_job = 0;
  bool is_gpu = false;
  friend bool operator==(const KindDemand&, const KindDemand&) = default;
};

struct Shape {
  PartitionIndex partition;
  NodeClass node_class = NodeClass::kOneRow;
  SelectUnit unit = SelectUnit::kCore;
  bool whole_nodes = false;
  bool contiguous = false;
  bool overcommit = false;
  bool least_loaded = false;
  bool block_cores = false;  // CR_CORE_DEFAULT_DIST_BLOCK
  int min_nodes = 1, req_nodes = 1, max_nodes = 1;
  bool one_node = false;  // max_nodes was 1 as asked (4.6 step 5)
  int min_cpus = 1;       // over all nodes
  int tasks = 0;          // as asked; 0 = not said
  int cpus_per_task = 1;
  int node_cpus = 1;   // free on each node at least (--mincpus, --ntasks-per-node, --cpus-per-task)
  int given_cpus = 1;  // the least of these that the job gets; fewer only with --overcommit
  int tasks_per_node = kNoLimit, tasks_per_socket = kNoLimit;
  int cpus_per_core_max = kNoLimit;     // from --ntasks-per-core, --threads-per-core
  int threads_per_core_max = kNoLimit;  // --threads-per-core: others are not even charged
  bool one_task_per_core = false;
  int sockets_per_node = 1, cores_per_socket = 1;
  int max_cpus_per_node = kNoLimit;  // of the partition, over all its jobs
  CountedDemand memory;              // in MiB
  DeviceDemand devices;              // on each node at least
  std::vector<KindDemand> kinds;     // of devices that the job asks for
  int tasks_per_core = kNoLimit;
  int cpus_per_gpu = 0, tasks_per_gpu = 0;
  bool gpu_cpus_by_default = false;  // cpus_per_gpu is DefCpuPerGPU
  std::int64_t memory_per_gpu = 0;   // MiB
  int min_gpu_cpus = 0;              // that GPUs bring with them on each node at least
  int min_gpu_cpus_of_job = 0;       // and over all nodes

  // Returns true if no rule of this shape looks at single sockets or at other jobs' cores: a node's
  // offer follows from its number of free cores.
  bool counts_suffice() const {
    return unit != SelectUnit::kSocket && tasks_per_socket == kNoLimit && sockets_per_node <= 1 &&
           cores_per_socket <= 1 && max_cpus_per_node == kNoLimit;
  }
  friend bool operator==(const Shape&, const Shape&) = default;
};

Shape make_shape(const Cluster& cluster, const SelectRequest& request);

// Returns the CPUs that a job on `nodes_count` nodes asked for, over all of them: a job of whole
// nodes may hold many more. Rows are packed by it (R4.11).
int cpus_asked(const Cluster& cluster, const SelectJob& job, int nodes_count);

// CPUs that the job can use on one core of this node (4.6 step 3).
inline int cpus_per_core(const Shape& shape, const NodeFacts& node) {
  return shape.cpus_per_core_max == kNoLimit ? node.threads
                                             : std::min(node.threads, shape.cpus_per_core_max);
}

// Cores of a socket that the job can use: those that --ntasks-per-socket's tasks need.
inline int cores_per_socket_max(const Shape& shape, const NodeFacts& node) {
  if (shape.tasks_per_socket == kNoLimit) return node.cores_per_socket;
  const int per_core = cpus_per_core(shape, node);
  return std::min(node.cores_per_socket,
                  quotient_up(shape.tasks_per_socket * shape.cpus_per_task, per_core));
}

// CPUs that a GPU of the job needs: those that it asks for, those of its tasks, or by default.
inline int cpus_for_each_gpu(const Shape& shape) {
  if (shape.tasks_per_gpu > 0 && (shape.cpus_per_gpu == 0 || shape.gpu_cpus_by_default)) {
    return shape.tasks_per_gpu * shape.cpus_per_task;
  }
  return shape.cpus_per_gpu;
}

// CPUs that a core is charged as.
inline int charged_per_core(const Shape& shape, const NodeFacts& node) {
  return shape.threads_per_core_max == kNoLimit
             ? node.threads
             : std::min(node.threads, shape.threads_per_core_max);
}

}  // namespace sched::cons_tres
