// Values that specs of several policy kinds share, in the scheduler's words and back. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "api/partition.h"
#include "scheduler/model/config.h"

namespace control {

sched::PreemptMode translate(kube::PreemptMode mode);
// Absent stays absent.
std::optional<sched::PreemptMode> translate(const std::optional<kube::PreemptMode>& mode);
// Returns the mode in the words of the API.
kube::PreemptMode preempt_mode_of(sched::PreemptMode mode);

// Absent: both stay as they are.
void translate_memory(const std::optional<kube::MemoryLimits>& limits, sched::MemoryLimit& defaults,
                      sched::MemoryLimit& maxima);
// DefCpuPerGPU and DefMemPerGPU.
sched::PerGpu default_per_gpu(const std::optional<std::int32_t>& cpus,
                              const std::optional<kube::MemoryLimits>& limits);

}  // namespace control
