#include "translation/policy_values.h"

#include "translation/units.h"

namespace control {
namespace {

// Rounded up to whole MiB, in which Slurm counts memory.
std::optional<sched::MemoryMiB> memory_of(const std::optional<kube::Bytes>& bytes) {
  return bytes ? std::optional{mib_of(*bytes)} : std::nullopt;
}

}  // namespace

// The API's Disabled is Slurm's OFF. Gang is a mode of Slurm's too, but has a field of its own in
// the API. Switches without a default let the compiler find a mode that is added on either side.
sched::PreemptMode translate(kube::PreemptMode mode) {
  switch (mode) {
    case kube::PreemptMode::kDisabled:
      return sched::PreemptMode::kOff;
    case kube::PreemptMode::kCancel:
      return sched::PreemptMode::kCancel;
    case kube::PreemptMode::kRequeue:
      return sched::PreemptMode::kRequeue;
    case kube::PreemptMode::kSuspend:
      return sched::PreemptMode::kSuspend;
  }
  return sched::PreemptMode::kOff;
}

std::optional<sched::PreemptMode> translate(const std::optional<kube::PreemptMode>& mode) {
  return mode ? std::optional{translate(*mode)} : std::nullopt;
}

// Goes the way back, for a status that says which mode was in force.
kube::PreemptMode preempt_mode_of(sched::PreemptMode mode) {
  switch (mode) {
    case sched::PreemptMode::kOff:
      return kube::PreemptMode::kDisabled;
    case sched::PreemptMode::kCancel:
      return kube::PreemptMode::kCancel;
    case sched::PreemptMode::kRequeue:
      return kube::PreemptMode::kRequeue;
    case sched::PreemptMode::kSuspend:
      return kube::PreemptMode::kSuspend;
  }
  return kube::PreemptMode::kDisabled;
}

// Both fields of a pair are set from one object: what a partition leaves out of its own block is
// absent and is not filled from the cluster's here, since the scheduler knows which level comes
// first.
void translate_memory(const std::optional<kube::MemoryLimits>& limits, sched::MemoryLimit& defaults,
                      sched::MemoryLimit& maxima) {
  if (!limits) return;
  defaults = {memory_of(limits->default_per_cpu), memory_of(limits->default_per_node)};
  maxima = {memory_of(limits->max_per_cpu), memory_of(limits->max_per_node)};
}

sched::PerGpu default_per_gpu(const std::optional<std::int32_t>& cpus,
                              const std::optional<kube::MemoryLimits>& limits) {
  sched::PerGpu defaults{.cpus = cpus.value_or(0)};
  if (limits && limits->default_per_gpu) defaults.memory = mib_of(*limits->default_per_gpu);
  return defaults;
}

}  // namespace control
