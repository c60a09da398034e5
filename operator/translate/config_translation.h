// SchedulerConfig, Partition and QOS -> the scheduler's configuration, one object at a time. What
// needs several objects (C1-C20) is judged by config_acceptance.h. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "kube/api/node.h"
#include "scheduler/model/config.h"

namespace control {

// Bounds of a spec and its CEL rules once more, and fields whose feature does not exist. Whole
// sentences that name the field, the value and what to do; empty = legal by itself.
std::vector<std::string> check_config(const kube::SchedulerConfig& config);
std::vector<std::string> check_partition(const kube::Partition& partition);
std::vector<std::string> check_qos(const kube::Qos& qos);

// With the API's defaults for what is absent. REQUIRES of all three: check_… found nothing.
sched::ClusterParameters translate_config(const kube::SchedulerConfigSpec& spec);
// `nodes`: those that exist; the hostlist or the selector picks from them.
sched::PartitionConfig translate_partition(const std::string& name, const kube::PartitionSpec& spec,
                                           std::span<const kube::Node* const> nodes);
sched::QosConfig translate_qos(const std::string& name, const kube::QosSpec& spec);

// Of SchedulerConfig.spec, with their defaults; the scheduler core does not know them.
struct OperatorParameters {
  int memory_reserve_percent = 5;
  base::Duration settle = std::chrono::seconds{2};
  kube::ClockPolicy clock = kube::ClockPolicy::kWarn;
  friend bool operator==(const OperatorParameters&, const OperatorParameters&) = default;
};
OperatorParameters operator_parameters(const kube::SchedulerConfigSpec& spec);

// The mode in the words of the API.
kube::PreemptMode preempt_mode_of(sched::PreemptMode mode);

}  // namespace control
