#include "translation/qos_translation.h"

#include <cstdint>

#include "translation/limits_translation.h"
#include "translation/policy_values.h"
#include "translation/spec_problems.h"

namespace control {

// Checks what the object says by itself, like check_config(). The bound of the priority leaves out
// Slurm's NO_VAL and INFINITE. A QOS that it may preempt and that does not exist shows only beside
// the others (config_acceptance.h).
std::vector<std::string> check_qos(const kube::Qos& qos) {
  SpecProblems problems;
  const kube::QosSpec& spec = qos.spec;
  problems.name(qos.metadata.name);
  problems.range("spec.priority", spec.priority, 0, 4'294'967'293);
  // A QOS cannot say OFF in Slurm either.
  if (spec.preempt_mode == kube::PreemptMode::kDisabled) {
    problems.add(
        "spec.preemptMode: Disabled is not possible for a QOS; use Cancel, Requeue or "
        "Suspend, or leave it out");
  }
  problems.not_negative("spec.preemptExemptTime", spec.preempt_exempt_time);
  problems.not_negative("spec.graceTime", spec.grace_time);
  check_limits("spec.limits", spec.limits, problems);
  // 0 % is legal: usage of such jobs is free.
  problems.range("spec.usageFactorPercent", spec.usage_factor_percent, 0, 1'000'000);
  return problems.take();
}

// An absent field gets Slurm's default: no limit, no priority, the mode of the cluster. The switch
// over flags makes the compiler find a new one.
sched::QosConfig translate_qos(const std::string& name, const kube::QosSpec& spec) {
  sched::QosConfig qos;
  qos.name = name;
  qos.priority = static_cast<std::uint32_t>(spec.priority.value_or(0));
  qos.preempt = spec.preempt;
  qos.preempt_mode = translate(spec.preempt_mode);
  qos.preempt_within = spec.preempt_within.value_or(false);
  qos.preempt_priority = spec.preempt_priority.value_or(false);
  qos.preempt_exempt_time = spec.preempt_exempt_time;
  qos.grace_time = spec.grace_time.value_or(base::Duration{0});
  for (const kube::QosFlag flag : spec.flags) {
    switch (flag) {
      case kube::QosFlag::kDenyOnLimit:
        qos.deny_on_limit = true;
        break;
      case kube::QosFlag::kPartitionMinNodes:
        qos.partition_min_nodes = true;
        break;
      case kube::QosFlag::kPartitionMaxNodes:
        qos.partition_max_nodes = true;
        break;
      case kube::QosFlag::kPartitionTimeLimit:
        qos.partition_time_limit = true;
        break;
      case kube::QosFlag::kOverPartQos:
        qos.over_part_qos = true;
        break;
      case kube::QosFlag::kNoReserve:
        qos.no_reserve = true;
        break;
    }
  }
  qos.limits = translate(spec.limits);
  // Percent in the API and thousandths in the scheduler: integers on both sides, so that usage is
  // the same on every machine.
  if (spec.usage_factor_percent) {
    qos.usage_factor_milli = std::int64_t{*spec.usage_factor_percent} * 10;
  }
  return qos;
}

}  // namespace control
