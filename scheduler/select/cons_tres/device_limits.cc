#include "scheduler/select/cons_tres/device_limits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sched::cons_tres {
namespace {

// How many tasks the node gets, as far as the request alone says it: at least and at most.
struct TaskBounds {
  int least = 1;
  int most = INT_MAX;
};

TaskBounds task_bounds(const Shape& shape, const NodeFacts& node) {
  const auto exactly = [](int tasks) { return TaskBounds{tasks, tasks}; };
  if (shape.tasks_per_node != kNoLimit) return exactly(shape.tasks_per_node);
  if (shape.tasks_per_socket != kNoLimit) {
    return {shape.tasks_per_socket, shape.tasks_per_socket * node.sockets};
  }
  if (shape.tasks_per_core != kNoLimit) {
    return {shape.tasks_per_core, shape.tasks_per_core * node.cores_count()};
  }
  if (shape.tasks_per_gpu > 0 && shape.tasks > 0) {
    return exactly(std::max(1, shape.tasks / std::max(1, shape.min_nodes)));
  }
  if (shape.one_node && shape.tasks > 0) return exactly(shape.tasks);
  if (shape.tasks == 1 || (shape.tasks > 0 && shape.tasks == shape.min_nodes)) return exactly(1);
  return {};
}

// One kind of devices after the other narrows what the node offers.
class Narrowing {
 public:
  Narrowing(const Shape& shape, const NodeFacts& node, const FreeOnNode& free)
      : shape_{shape},
        per_core_{cpus_per_core(shape, node)},
        threads_{node.threads},
        sockets_{node.sockets},
        free_{free},
        cpus_{free.cpus},
        cores_{free.cores},
        tasks_{task_bounds(shape, node)} {}

  // 1. As many tasks as the CPUs suffice for.
  // 2. As many as find their devices, kind by kind.
  // 3. CPUs for these tasks alone, unless each GPU brings CPUs with it.
  DeviceLimits result() {
    DeviceLimits limits;
    if (!shape_.overcommit) {  // 1
      const int with_cpus = cpus_ / shape_.cpus_per_task;
      if (with_cpus < tasks_.least) return {};
      tasks_.most = std::min(tasks_.most, with_cpus);
    }
    limits.resources = free_.cpus;
    for (std::size_t i = 0; i < shape_.kinds.size(); ++i) {  // 2
      if (!narrow(shape_.kinds[i], free_.devices[i], limits)) return {};
    }
    const bool counts_tasks =
        shape_.cpus_per_task > 1 || !shape_.one_task_per_core || shape_.min_gpu_cpus > 0;
    const bool gpus_bring_cpus =
        shape_.cpus_per_gpu > 0 && !(shape_.gpu_cpus_by_default && shape_.tasks_per_gpu > 0);
    if (!gpus_bring_cpus && counts_tasks && tasks_.most != INT_MAX) {  // 3
      cpus_ = std::min(cpus_, asked_product(tasks_.most, shape_.cpus_per_task));
    }
    limits.cpus = cpus_;
    if (tasks_.most != INT_MAX) limits.cores = cores_;
    return limits;
  }

 private:
  int cpus_for_each(const KindDemand& kind) const {
    return kind.is_gpu ? cpus_for_each_gpu(shape_) : 0;
  }

  // Returns the most that the job takes of the kind on a node; 0 = any number.
  int most_of(const KindDemand& kind) const {
    if (shape_.whole_nodes) return 0;
    if (kind.per_node > 0) return kind.per_node;
    return kind.of_job > 0 ? kind.of_job : asked_product(kind.per_socket, sockets_);
  }

  // Returns false if the node cannot be used.
  bool narrow(const KindDemand& kind, int there, DeviceLimits& limits) {
    const int cpus_each = cpus_for_each(kind);
    int most = most_of(kind);
    const auto at_most = [&most](int count) { most = most == 0 ? count : std::min(most, count); };
    if (kind.is_gpu && shape_.memory_per_gpu > 0) {
      const auto with_memory =
          static_cast<int>(std::min<std::int64_t>(free_.memory / shape_.memory_per_gpu, kAskedMax));
      if (with_memory <= 0) return false;
      there = std::min(there, with_memory);
      at_most(with_memory);
    }
    if (cpus_each > 0) {
      if (cpus_ / cpus_each == 0) return false;
      at_most(cores_ * threads_ / cpus_each);
    }
    const int least =
        std::max({1, kind.per_node, asked_product(kind.per_socket, shape_.sockets_per_node),
                  asked_product(kind.per_task, std::max(1, shape_.tasks_per_node))});
    if (there < least || (most > 0 && most < least)) return false;
    if (kind.is_gpu) {
      limits.near_gpus += most > 0 ? std::min(there, most) : there;
      limits.resources += there;
    }
    int taken = there;
    if (cpus_each > 0) {
      taken = std::min(there, cpus_ / cpus_each);
      if (most > 0) taken = std::min(taken, most);
      if (taken < least) return false;
    }
    if (!narrow_tasks(kind, taken, cpus_each, limits)) return false;
    // The sums over nodes count what is there, and not the most that the job takes (recorded:
    // rnd_pergpu_1).
    if (cpus_each > 0) there = std::min(there, cpus_ / cpus_each);
    limits.devices.push_back(there);
    return there >= std::max(kind.per_node, kind.per_task);
  }

  // Tasks, and the cores that they need: those beyond are given up. `there`: devices for them.
  bool narrow_tasks(const KindDemand& kind, int there, int cpus_each, DeviceLimits& limits) {
    if (kind.per_task > 0) {
      const int with_devices = (kind.per_node > 0 ? kind.per_node : there) / kind.per_task;
      tasks_.most = std::min(tasks_.most, with_devices);
      limits.tasks = std::min(limits.tasks, there / kind.per_task);
    }
    if (tasks_.most != INT_MAX) tasks_.most = tasks_.most / tasks_.least * tasks_.least;
    if (tasks_.most <= 0) return false;
    if (tasks_.most != INT_MAX) {
      int needed = cores_of(tasks_.most);
      while (needed > cores_ && tasks_.most > tasks_.least) needed = cores_of(--tasks_.most);
      if (cpus_each > 0) {
        const int devices = kind.per_node > 0   ? kind.per_node
                            : kind.per_task > 0 ? kind.per_task * tasks_.most
                                                : there;
        needed = std::max(needed, quotient_up(asked_product(devices, cpus_each), threads_));
      }
      if (needed > cores_) return false;
      cores_ = needed;
      cpus_ = std::min(cpus_, cores_ * threads_);
    }
    return true;
  }

  int cores_of(int tasks) const {
    const int each = shape_.one_task_per_core
                         ? quotient_up(shape_.cpus_per_task, per_core_) * per_core_
                         : shape_.cpus_per_task;
    return quotient_up(asked_product(tasks, each), per_core_);
  }

  const Shape& shape_;
  const int per_core_;  // CPUs that the job can use
  const int threads_;
  const int sockets_;
  const FreeOnNode& free_;
  int cpus_;
  int cores_;
  TaskBounds tasks_;
};

}  // namespace

DeviceLimits device_limits(const Shape& shape, const NodeFacts& node, const FreeOnNode& free) {
  DeviceLimits limits;
  if (free.cpus > 0) limits = Narrowing{shape, node, free}.result();
  limits.devices.resize(shape.kinds.size());
  return limits;
}

}  // namespace sched::cons_tres
