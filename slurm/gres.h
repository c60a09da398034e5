// Slurm's spelling of devices (sbatch(1), slurm.conf(5)): --gres, --gpus and its kind, and Gres of
// a node. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "scheduler/model/job.h"

namespace slurm {

inline constexpr std::string_view kGpu = sched::kGpuName;

// Parses "gpu:a100:2,nic", as --gres and Gres have it; "gpu" and "gpu:a100" ask for one. Empty for
// "none", "0" and counts of 0. `what` begins the message.
base::Result<sched::Devices> parse_gres(std::string_view what, std::string_view text);

// Parses "2" or "a100:2", as --gpus, --gpus-per-node, -task and -socket have it: of GPUs alone.
base::Result<sched::Devices> parse_gpus(std::string_view what, std::string_view text);

// Requests for GPUs and other devices, in the words of sbatch.
struct DeviceOptions {
  std::optional<sched::Devices> gres, gpus, gpus_per_node, gpus_per_task, gpus_per_socket;
  std::optional<int> cpus_per_gpu, tasks_per_gpu;
  std::optional<sched::MemoryMiB> memory_per_gpu;
};

// Puts it into the request, with what the numbers say of each other (settle_devices).
// `cpus_given`, `memory_given`: by options of their own. REQUIRES: the request's nodes and tasks
// are settled.
base::Status apply_devices(const DeviceOptions& options, bool cpus_given, bool memory_given,
                           sched::JobRequest& request);

// Fills in what the numbers of devices, tasks and nodes say of each other. Refuses, in the words of
// sbatch, numbers that contradict. A second time it changes nothing.
base::Status settle_devices(sched::JobRequest& request);

}  // namespace slurm
