// A job: what its user asked (JobRequest), where it is (Allocation), and how far it has come
// (JobState). The record that the scheduler keeps per job is its own business
// (scheduler/jobs/job_table.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "scheduler/model/array.h"
#include "scheduler/model/asked_product.h"
#include "scheduler/model/core_set.h"
#include "scheduler/model/dependency.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/licenses.h"

namespace sched {

// The user's wish about sharing (4.3). kAny leaves it to the partition; kNode and kUser are
// --exclusive, of which the last one on a command line counts (1.5).
enum class Sharing { kAny, kOverSubscribe, kNode, kUser };  // --oversubscribe, --exclusive[=user]

// Multiplied by the CPUs that are allocated, whole cores with their threads, and not by those that
// were asked for (1.8 step 7).
struct MemoryPerCpu {
  MemoryMiB amount;
  friend bool operator==(const MemoryPerCpu&, const MemoryPerCpu&) = default;
};
struct MemoryPerNode {
  MemoryMiB amount;
  friend bool operator==(const MemoryPerNode&, const MemoryPerNode&) = default;
};  // 0 = all of the node's
using MemoryRequest =
    std::variant<std::monostate, MemoryPerCpu, MemoryPerNode>;  // nothing = default (1.8)

struct JobRequest {  // what a user asks for (1.5)
  JobId id{};
  std::string name;     // for people, and for singletons
  std::string user;     // Slurm's user; the namespace in Kubernetes
  std::string account;  // empty = the user's default
  base::Instant submit_time{};
  std::vector<std::string> partitions;  // empty = the default partition
  int min_nodes = 1;
  bool nodes_given = false;      // -N was given (`sbatch -n4` alone leaves the count open)
  std::optional<int> max_nodes;  // nothing = no upper bound of its own; -N3 sets both to 3
  std::optional<int> tasks;      // nothing = one per node
  std::optional<int> tasks_per_node, tasks_per_socket, tasks_per_core;
  int cpus_per_task = 1;
  std::optional<int> min_cpus_per_node;  // --mincpus
  std::optional<int> sockets_per_node, cores_per_socket, threads_per_core;
  bool overcommit = false;
  bool use_min_nodes =
      false;  // --use-min-nodes: a range of node counts aims at its lower end (4.1)
  MemoryRequest memory;
  MemoryMiB tmp_disk{0};  // --tmp
  // Devices: on each node (--gres, --gpus-per-node), over all nodes (--gpus), for each task
  // (--gpus-per-task), for each socket on which the job has cores (--gpus-per-socket).
  Devices devices, devices_of_job, devices_per_task, devices_per_socket;
  PerGpu per_gpu;
  Licenses licenses;  // for the whole job: --licenses
  Sharing sharing = Sharing::kAny;
  std::vector<std::string> required_nodes;  // --nodelist
  std::vector<std::string> excluded_nodes;
  // More excluded nodes, in a list that jobs of one kind share; null if there are none. Requests
  // are equal only if they share the list: comparing thousands of names costs more than it saves.
  std::shared_ptr<const std::vector<std::string>> unusable_nodes;
  bool contiguous = false;
  std::string constraint;  // Slurm's grammar (4.2.3); validated with Constraint::parse
  std::optional<base::Duration> time_limit;  // nothing = the partition's default
  std::optional<base::Duration> time_min;
  std::optional<base::Instant> begin_time;
  std::optional<base::Instant> deadline;
  Dependency dependency;
  std::string qos;                   // empty = none
  std::optional<Priority> priority;  // given by a privileged user; nothing = computed
  std::int32_t nice = 0;
  bool hold = false;
  bool suspend = false;               // user's suspension wanted from the start
  std::optional<bool> requeue;        // nothing = the cluster's default
  std::optional<ArrayRequest> array;  // what is asked for holds for each of its tasks
  bool pod_per_task = false;          // a pod for each task, else one per node: NodeSpec::pods_max
  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

// Returns how many tasks the job has if it gets `nodes_count` nodes: --ntasks-per-node, else
// --ntasks, else one per node (4.11 step 1 without the selectors' rule for whole CPUs).
constexpr int tasks_of(const JobRequest& request, int nodes_count) {
  if (request.tasks) return *request.tasks;
  return asked_product(request.tasks_per_node.value_or(1), nodes_count);
}

// Returns the devices that each node of the job must have at least: of what is asked for over all
// nodes there is one on each.
Devices least_devices(const JobRequest& request);
// Returns true if it asks for devices at all.
inline bool asks_for_devices(const JobRequest& request) {
  return !request.devices.empty() || !request.devices_of_job.empty() ||
         !request.devices_per_task.empty() || !request.devices_per_socket.empty();
}
// Returns true if devices are asked for over all nodes, for tasks or for sockets: cons_tres shares
// them out, and linear cannot (R11.9).
inline bool shares_devices(const JobRequest& request) {
  return !request.devices_of_job.empty() || !request.devices_per_task.empty() ||
         !request.devices_per_socket.empty();
}

// The part of an allocation on one node. The order of nodes in an allocation counts: the numbers of
// tasks follow from it.
struct NodeAllocation {
  NodeIndex node;
  CoreSet cores;
  std::int32_t cpus = 0;  // charged: cores times threads, or CPUs with CR_CPU
  std::int32_t tasks = 0;
  MemoryMiB memory{0};  // charged; 0 where memory is not managed
  friend bool operator==(const NodeAllocation&, const NodeAllocation&) = default;
};

// Returns the pods that the job has there.
constexpr int pods_on(const JobRequest& request, const NodeAllocation& use) {
  return request.pod_per_task ? use.tasks : 1;
}

struct Allocation {
  std::vector<NodeAllocation> nodes;   // in node order (natural sort of the names)
  std::vector<DevicesOnNode> devices;  // in the same order; mostly none
  bool whole_nodes = false;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// Returns the devices that the job holds there.
inline Devices devices_on(const Allocation& allocation, NodeIndex node) {
  Devices devices;
  for (const DevicesOnNode& use : allocation.devices) {
    if (use.node == node) devices.push_back({use.kind, use.count});
  }
  return devices;
}

// Base states (2.1). Terminal from kCompleted on: is_terminal() compares, so a new state that can
// be left again goes before it.
enum class JobState {
  kPending,
  kRunning,
  kSuspended,
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kPreempted,
  kNodeFail,
  kOutOfMemory,
  kDeadline,
};
constexpr bool is_terminal(JobState state) {
  return state >= JobState::kCompleted;
}

// Returns what remains of a task that has ended in this state.
constexpr TaskOutcome outcome_of(JobState state) {
  if (state == JobState::kCompleted) return TaskOutcome::kSucceeded;
  return state == JobState::kCancelled ? TaskOutcome::kCanceled : TaskOutcome::kFailed;
}
// Returns the state of an array as a whole. REQUIRES: all of its tasks have ended.
inline JobState state_of(const TaskOutcomes& outcomes) {
  if (outcomes.count(TaskOutcome::kFailed) > 0) return JobState::kFailed;
  if (outcomes.count(TaskOutcome::kCanceled) > 0) return JobState::kCancelled;
  return JobState::kCompleted;
}

// Why a job waits (2.4), is suspended, is held or ended. The names are Slurm's.
// New ones go where 2.4 has them, and get a name in reason_names.cc.
enum class Reason {
  kNone,
  kPriority,
  kResources,
  kDependency,
  kDependencyNeverSatisfied,
  kBeginTime,
  kJobHeldUser,
  kJobHeldAdmin,
  kJobHoldMaxRequeue,
  kLaunchFailedRequeuedHeld,
  kLicenses,
  kPartitionTimeLimit,
  kPartitionNodeLimit,
  kPartitionDown,
  kPartitionInactive,
  kPartitionConfig,
  kQosNotAllowed,
  kInvalidQos,
  kReqNodeNotAvail,
  kBadConstraints,
  kMaxMemPerLimit,
  kJobArrayTaskLimit,  // as many tasks of its array run as may (ArrayRequest::at_once)
  kDeadline,
  kTimeslice,  // suspended: it is the turn of other jobs
  kPreempted,  // suspended in the shadow of a higher tier
  kUser,       // suspended by its user
  // Limits of an account, of a user in it, or of a QOS (limits/); the names say which.
  // These are an account's, or a user's in it.
  kAssocGrpCpuLimit,
  kAssocGrpMemLimit,
  kAssocGrpNodeLimit,
  kAssocGrpBilling,
  kAssocGrpGres,
  kAssocGrpJobsLimit,
  kAssocGrpWallLimit,
  kAssocMaxCpuPerJobLimit,
  kAssocMaxMemPerJob,
  kAssocMaxNodePerJobLimit,
  kAssocMaxBillingPerJob,
  kAssocMaxGresPerJob,
  kAssocMaxCpuPerNode,
  kAssocMaxMemPerNode,
  kAssocMaxBillingPerNode,
  kAssocMaxGresPerNode,
  kAssocMaxJobsLimit,
  kAssocMaxWallDurationPerJobLimit,
  // These are the job's QOS', or its partition's.
  kQosGrpCpuLimit,
  kQosGrpMemLimit,
  kQosGrpNodeLimit,
  kQosGrpBilling,
  kQosGrpGres,
  kQosGrpJobsLimit,
  kQosGrpWallLimit,
  kQosMaxCpuPerJobLimit,
  kQosMaxMemoryPerJob,
  kQosMaxNodePerJobLimit,
  kQosMaxBillingPerJob,
  kQosMaxGresPerJob,
  kQosMaxCpuPerNode,
  kQosMaxMemoryPerNode,
  kQosMaxBillingPerNode,
  kQosMaxGresPerNode,
  kQosMaxCpuPerUserLimit,
  kQosMaxMemoryPerUser,
  kQosMaxNodePerUserLimit,
  kQosMaxBillingPerUser,
  kQosMaxGresPerUser,
  kQosMaxJobsPerUserLimit,
  kQosMaxWallDurationPerJobLimit,
  kQosMinCpuNotSatisfied,
  kQosMinMemory,
  kQosMinNode,
  kQosMinBilling,
  kQosMinGres,
  kMaxCpuPerAccount,
  kMaxMemoryPerAccount,
  kMaxNodePerAccount,
  kMaxBillingPerAccount,
  kMaxGresPerAccount,
  kMaxJobsPerAccount,
};

}  // namespace sched
