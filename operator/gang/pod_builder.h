// The pods and the Service of one start of a job, as JSON to create. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/api/service.h"
#include "operator/gang/batch_pod.h"
#include "scheduler/model/job.h"
#include "translation/devices.h"
#include "translation/pod_defaults.h"
#include "translation/pod_slots.h"

namespace control {

struct PodOptions {
  base::Duration kill_wait = std::chrono::seconds{30};  // default termination grace period
  std::optional<base::Duration> time_limit{};           // until the operator ends the job
  DefaultsInForce defaults{};  // of the partition, and the namespace's identity
  bool mounts_images = false;  // its node can mount them as volumes
  bool may_requeue = false;    // the job
  std::string cpuset{};        // CPUs that its node's agent binds it to; "" = none
  DeviceResources devices{};   // extended resources that it asks for
  kube::DevicesConfig devices_config{};
  // That the job asks for, its partition's default or the cluster's. nullopt: all of its nodes.
  sched::MemoryRequest memory{};
  friend bool operator==(const PodOptions&, const PodOptions&) = default;
};

// The place of a start in its array: which task it is. SOURCE: sbatch(1), SLURM_ARRAY_….
struct ArrayPlace {
  std::int64_t job_id = 0;  // of the array
  int task = 0;
  int count = 0;
  int min = 0;
  int max = 0;
  int step = 1;
  friend bool operator==(const ArrayPlace&, const ArrayPlace&) = default;
};

struct GangLayout {
  std::size_t pods_count = 0;
  int tasks = 0;
  // Indexed by PodSlot::node_index:
  std::vector<int> cpus_per_node;
  std::vector<int> first_task;     // of the node
  std::vector<std::string> hosts;  // host_names of the nodes, for batch scripts
  std::string cpus_list;           // SLURM_JOB_CPUS_PER_NODE
  std::string tasks_list;          // SLURM_TASKS_PER_NODE
  std::optional<ArrayPlace> array{};

  std::optional<int> array_task() const {
    return array ? std::optional{array->task} : std::nullopt;
  }
  friend bool operator==(const GangLayout&, const GangLayout&) = default;
};
// Derives the layout from pod_slots. Cost: O(slots), so once for all pods of a start.
GangLayout gang_layout(std::span<const PodSlot> slots);

// Builds the pod of `slot`: the template's, with node, names, labels, SLURM_* environment, requests
// of 1m per CPU, limits and the Job as controller. The template wins where it may: environment by
// the same name, its grace period, its own labels but kubegang's. REQUIRES: the job has its
// template,
// which check_template found legal, a committed allocation, `slot` is one of pod_slots of it, and
// `gang` is the layout of those. kInvalidArgument: the template does not decode, or its memory
// limits cannot be kept, or the job is a batch script and `launcher` is empty.
base::Result<nlohmann::json> build_pod(const kube::Job& job, const PodSlot& slot,
                                       const GangLayout& gang, const PodOptions& options,
                                       const PodLauncher& launcher = {});

// Returns true for jobs of more than one pod: they have stable host names <job>-<index>.<job>, of a
// task of an array <job>-<task>-<index>.<job>, unless network is None.
bool needs_service(const kube::Job& job, std::size_t pods_count);
kube::Service build_service(const kube::Job& job, const JobIdentity& identity);

}  // namespace control
