// srun's and sbatch's --gpu-bind. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurm {

// Which of the GPUs that a step has on a node each of its tasks there sees.
struct GpuBinding {
  enum class Kind {
    kAll,      // closest: no plugin says which cores are near a GPU
    kNone,     // whatever the container has
    kSingle,   // single:N: one GPU for each N tasks
    kPerTask,  // per_task:N: N for each task
    kMap,      // map_gpu:0,1: the index of each task's GPU
    kMask      // mask_gpu:3,0x4: the bits of each task's GPUs
  };
  Kind kind = Kind::kAll;
  std::size_t count = 1;              // of kSingle, kPerTask
  std::vector<std::uint64_t> values;  // of kMap, kMask
  friend bool operator==(const GpuBinding&, const GpuBinding&) = default;

  // Returns the GPUs of the node's task number `task`, of `gpus` that there are; never none.
  std::vector<std::size_t> of_task(std::size_t task, std::size_t gpus) const;
};

// Parses "closest", "verbose,single:2", "map_gpu:0*2,1". kInvalidArgument: there is no such.
base::Result<GpuBinding> parse_gpu_binding(std::string_view value);

}  // namespace slurm
