#include "operator/translate/qos_translation.h"

#include <cstdint>

#include "kube/api/time_format.h"
#include "operator/translate/policy_values.h"
#include "operator/translate/spec_problems.h"

namespace control {

std::vector<std::string> check_qos(const kube::Qos& qos) {
  SpecProblems problems;
  const kube::QosSpec& spec = qos.spec;
  problems.name(qos.metadata.name);
  problems.range("spec.priority", spec.priority, 0, 4'294'967'293);
  if (spec.preempt_mode == kube::PreemptMode::kDisabled) {
    problems.add(
        "spec.preemptMode: Disabled is not possible for a QOS; use Cancel, Requeue or "
        "Suspend, or leave it out");
  }
  problems.not_negative("spec.preemptExemptTime", spec.preempt_exempt_time);
  problems.not_negative("spec.graceTime", spec.grace_time);
  if (spec.limits) {
    problems.range("spec.limits.maxJobsPerNamespace", spec.limits->max_jobs_per_namespace, 1,
                   INT32_MAX);
    problems.range("spec.limits.maxCPUsPerNamespace", spec.limits->max_cpus_per_namespace, 1,
                   INT32_MAX);
    problems.range("spec.limits.maxNodesPerJob", spec.limits->max_nodes_per_job, 1, INT32_MAX);
    problems.range("spec.limits.groupCPUs", spec.limits->group_cpus, 1, INT32_MAX);
    if (spec.limits->max_time && spec.limits->max_time->count() <= 0) {
      problems.add("spec.limits.maxTime: " + kube::format_duration(*spec.limits->max_time) +
                   " is not possible; use more than 0s, or leave it out for no limit");
    }
  }
  return problems.take();
}

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
    }
  }
  if (spec.limits) {
    qos.limits.user_jobs = spec.limits->max_jobs_per_namespace;
    qos.limits.user_tres[sched::Tres::kCpu] = spec.limits->max_cpus_per_namespace;
    qos.limits.job_tres[sched::Tres::kNode] = spec.limits->max_nodes_per_job;
    qos.limits.group_tres[sched::Tres::kCpu] = spec.limits->group_cpus;
    qos.limits.job_wall = spec.limits->max_time;
  }
  return qos;
}

}  // namespace control
