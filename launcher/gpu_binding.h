// The GPUs of a step: which of those of its node each task sees. Pure.
// SOURCE: srun(1) of 22.05, as recorded.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/process.h"

namespace launcher {

// Variables of a step that say what srun asks for; no task sees them.
inline constexpr char kGpusOfEachTask[] = "KUBEGANG_GPUS_OF_EACH_TASK";  // unset: all of its nodes
inline constexpr char kGpuBinding[] = "KUBEGANG_GPU_BINDING";  // as --gpu-bind; unset: no binding

// Returns how many devices "2", "a100:2" or "a100:1,v100:1" are.
std::size_t devices_in(const std::string& text);

// Leaves task number `local` of the `tasks` that the step has on this node its own GPUs in
// CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and SLURM_STEP_GPUS, and says in SLURM_GPUS_ON_NODE
// how many the step has here. A task that is alone sees all that the step has.
void bind_gpus(Environment& environment, std::size_t local, std::size_t tasks);

}  // namespace launcher
