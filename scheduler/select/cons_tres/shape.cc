#include "scheduler/select/cons_tres/shape.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "scheduler/model/asked_product.h"

namespace sched::cons_tres {
namespace {

// Memory, and the CPUs that a limit per CPU adds for it (1.8).
void resolve_memory(const ClusterParameters& cluster, const PartitionConfig& partition,
                    const JobRequest& asked, Shape& shape) {
  const MemoryDemand demand = memory_demand(cluster, partition, asked);
  shape.memory = demand.memory;
  shape.memory_per_gpu = demand.mib_per_gpu;
  shape.cpus_per_task = asked_product(shape.cpus_per_task, demand.task_factor);
  shape.node_cpus = std::max(shape.node_cpus, demand.node_cpus);
  shape.given_cpus = demand.node_cpus;
}

// How many CPUs of a core the job can use (4.6 step 3), and how many it is charged for. The
// narrowest of the limits counts: 2 threads per core, one task per core and 1 CPU per task leave
// one CPU of each core to the job, and it is charged both; with --threads-per-core=1 it is charged
// one.
void resolve_threads(const ClusterParameters& cluster, const JobRequest& asked, Shape& shape) {
  std::optional<int> tasks_per_core = asked.tasks_per_core;
  // CR_ONE_TASK_PER_CORE is a default: a request for threads or tasks per core overrides it.
  if (!tasks_per_core && !asked.threads_per_core && cluster.one_task_per_core) tasks_per_core = 1;
  shape.tasks_per_core = tasks_per_core.value_or(kNoLimit);
  if (tasks_per_core) shape.cpus_per_core_max = asked_product(*tasks_per_core, shape.cpus_per_task);
  shape.one_task_per_core = tasks_per_core == 1;
  shape.threads_per_core_max = asked.threads_per_core.value_or(kNoLimit);
  if (asked.threads_per_core &&
      (shape.cpus_per_core_max == kNoLimit || *asked.threads_per_core < shape.cpus_per_core_max)) {
    shape.cpus_per_core_max = *asked.threads_per_core;
  }
}

// Returns every kind that the job names, with what it wants of it.
std::vector<KindDemand> kinds_of(const JobRequest& asked) {
  std::vector<KindDemand> kinds;
  const auto add = [&](const Devices& devices, int KindDemand::*field) {
    for (const DeviceCount& each : devices) {
      auto known = std::ranges::find(kinds, each.kind, &KindDemand::kind);
      if (known == kinds.end()) {
        kinds.push_back({.kind = each.kind, .is_gpu = each.kind.name == kGpuName});
        known = std::prev(kinds.end());
      }
      (*known).*field = each.count;
    }
  };
  add(asked.devices_of_job, &KindDemand::of_job);
  add(asked.devices, &KindDemand::per_node);
  add(asked.devices_per_task, &KindDemand::per_task);
  add(asked.devices_per_socket, &KindDemand::per_socket);
  return kinds;
}

// Devices, and the CPUs that GPUs bring with them: those of the job, or by default. As many for
// each task are as many for the job.
void resolve_devices(const ClusterParameters& cluster, const PartitionConfig& partition,
                     const JobRequest& asked, Shape& shape) {
  const bool tasks_know = asked.tasks.has_value() || asked.tasks_per_node.has_value();
  shape.kinds = kinds_of(asked);
  shape.tasks_per_gpu = asked.per_gpu.tasks;
  shape.cpus_per_gpu = asked.per_gpu.cpus;
  if (shape.cpus_per_gpu == 0 && asked.cpus_per_task <= 1) {
    const int of_partition = partition.default_per_gpu.cpus;
    shape.cpus_per_gpu = of_partition > 0 ? of_partition : cluster.default_per_gpu.cpus;
    shape.gpu_cpus_by_default = true;
  }
  for (KindDemand& kind : shape.kinds) {
    if (kind.per_task > 0 && kind.of_job == 0 && tasks_know) {
      kind.of_job = asked_product(kind.per_task, tasks_of(asked, shape.min_nodes));
    }
    if (!kind.is_gpu) continue;
    if (shape.cpus_per_gpu > 0 && kind.per_task > 0) {
      shape.cpus_per_task =
          std::max(shape.cpus_per_task, asked_product(kind.per_task, shape.cpus_per_gpu));
      shape.node_cpus = std::max(shape.node_cpus, shape.cpus_per_task);
      shape.given_cpus = std::max(shape.given_cpus, shape.cpus_per_task);
    }
    const int on_node = kind.per_node > 0   ? kind.per_node
                        : kind.per_task > 0 ? kind.per_task * shape.tasks_per_node
                                            : 1;
    const int in_all = kind.of_job > 0     ? kind.of_job
                       : kind.per_node > 0 ? asked_product(kind.per_node, shape.min_nodes)
                                           : 0;
    shape.min_gpu_cpus += asked_product(shape.cpus_per_gpu, on_node);
    shape.min_gpu_cpus_of_job += asked_product(shape.cpus_per_gpu, in_all);
  }
}

// CPUs over all nodes and CPUs on each node. CPUs that a limit of memory per CPU adds to each task
// do not matter on single nodes where the tasks are counted (recorded). For example, 4 tasks of 2
// CPUs on two nodes need 8 CPUs in all and 2 on each node at least; with --ntasks-per-node=2
// instead of the number of tasks, 8 in all and 4 on each.
void resolve_cpus(const JobRequest& asked, Shape& shape) {
  const int per_task = shape.cpus_per_task;
  if (!shape.overcommit) {
    const int least = asked.tasks ? std::max(1, asked.cpus_per_task) : per_task;
    shape.node_cpus =
        std::max(shape.node_cpus, asked_product(least, std::max(1, shape.tasks_per_node)));
    shape.given_cpus = shape.node_cpus;
    shape.min_cpus = asked_product(tasks_of(asked, shape.min_nodes), per_task);
  } else {
    // --mincpus says which nodes will do, and not what the job gets there (recorded).
    if (shape.tasks_per_node == kNoLimit) {
      shape.given_cpus = std::max(shape.given_cpus, per_task);
    }
    shape.node_cpus = std::max(shape.node_cpus, shape.given_cpus);
    shape.min_cpus = shape.min_nodes;
  }
}

}  // namespace

// Classes that do not go together never meet on a node (R4.16): a job that takes turns would stop
// one that was promised its cores for itself.
// The class follows from the partition, and from the request if that may choose (R4.14).
NodeClass class_of(const Partition& partition, const JobRequest& request) {
  if (partition.max_share == 0) return NodeClass::kReserved;
  if (partition.force) return NodeClass::kShared;
  if (partition.max_share > 1 && request.sharing == Sharing::kOverSubscribe) {
    return NodeClass::kShared;
  }
  return NodeClass::kOneRow;
}

// Returns the CPUs that the job asked for on its nodes. It may hold more there.
int cpus_asked(const Cluster& cluster, const SelectJob& job, int nodes_count) {
  const JobRequest& asked = *job.request;
  if (asked.overcommit) return std::max(nodes_count, asked.min_cpus_per_node.value_or(1));
  const MemoryDemand memory =
      memory_demand(cluster.parameters(), cluster.partition(job.partition).config, asked);
  const int per_task = asked_product(std::max(1, asked.cpus_per_task), memory.task_factor);
  // The greatest of its three ways to ask for CPUs.
  return std::max({asked_product(nodes_count, asked.tasks_per_node.value_or(1)),
                   asked_product(nodes_count, asked.min_cpus_per_node.value_or(1)),
                   asked_product(tasks_of(asked, nodes_count), per_task)});
}

// Everything that an attempt needs of the request, the partition and the cluster, resolved once.
Shape make_shape(const Cluster& cluster, const SelectRequest& request) {
  const ClusterParameters& parameters = cluster.parameters();
  const Partition& partition = cluster.partition(request.job->partition);
  const JobRequest& asked = *request.job->request;
  Shape shape;
  shape.partition = request.job->partition;
  shape.node_class = class_of(partition, asked);
  // Backfill asks first with stacking forbidden (8.1 step h).
  if (!request.may_stack && !partition.force && shape.node_class == NodeClass::kShared) {
    shape.node_class = NodeClass::kOneRow;  // it may share, and is tried as if it did not
  }
  shape.unit = parameters.unit;
  shape.whole_nodes = request.whole_nodes || shape.node_class == NodeClass::kReserved;
  if (asks_for_devices(asked)) {
    shape.devices = {.asked = least_devices(asked), .all = shape.whole_nodes};
  } else {
    shape.devices.all = shape.whole_nodes;
  }
  shape.contiguous = asked.contiguous;
  shape.overcommit = asked.overcommit;
  shape.least_loaded = parameters.least_loaded || partition.config.least_loaded;
  // CR_CPU takes cores in blocks in any case (4.11 step 3).
  shape.block_cores = parameters.core_default_dist_block || shape.unit == SelectUnit::kCpu;
  shape.min_nodes = request.min_nodes;
  shape.req_nodes = request.req_nodes;
  shape.one_node = asked.max_nodes == 1;
  shape.tasks = asked.tasks.value_or(0);
  // More nodes than tasks are useless. For a single task this holds with devices, and if CPUs make
  // no tasks (--overcommit): a further node would get no CPU.
  const bool one_task_counts = asks_for_devices(asked) || shape.overcommit;
  shape.max_nodes = shape.tasks > 1 || (shape.tasks == 1 && one_task_counts)
                        ? std::min(request.max_nodes, std::max(shape.tasks, request.min_nodes))
                        : request.max_nodes;
  shape.cpus_per_task = std::max(1, asked.cpus_per_task);
  shape.node_cpus = std::max(1, asked.min_cpus_per_node.value_or(1));
  shape.tasks_per_node = asked.tasks_per_node.value_or(kNoLimit);
  shape.tasks_per_socket = asked.tasks_per_socket.value_or(kNoLimit);
  shape.sockets_per_node = asked.sockets_per_node.value_or(1);
  shape.cores_per_socket = asked.cores_per_socket.value_or(1);
  shape.max_cpus_per_node = partition.config.max_cpus_per_node.value_or(kNoLimit);
  resolve_memory(parameters, partition.config, asked, shape);
  resolve_threads(parameters, asked, shape);
  resolve_cpus(asked, shape);
  if (asks_for_devices(asked)) resolve_devices(parameters, partition.config, asked, shape);
  return shape;
}

}  // namespace sched::cons_tres
