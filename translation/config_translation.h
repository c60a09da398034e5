// SchedulerConfig -> the scheduler's parameters and the operator's own. config_acceptance.h judges
// what needs several objects (C1-C20). Pure.
#pragma once

#include <string>
#include <vector>

#include "api/devices_config.h"
#include "api/scheduler_config.h"
#include "base/time.h"
#include "scheduler/model/config.h"

namespace control {

// Bounds of a spec and its CEL rules once more, and fields whose feature does not exist. Whole
// sentences that name the field, the value and what to do; empty = legal by itself.
std::vector<std::string> check_config(const kube::SchedulerConfig& config);

// Translates with the API's defaults for what is absent. REQUIRES: check_config found nothing.
sched::ClusterParameters translate_config(const kube::SchedulerConfigSpec& spec);

// Parameters of SchedulerConfig.spec that the scheduler core does not know, with their defaults.
struct OperatorParameters {
  int memory_reserve_percent = 5;
  base::Duration settle = std::chrono::seconds{2};
  base::Duration start_timeout = std::chrono::minutes{30};
  kube::ClockPolicy clock = kube::ClockPolicy::kWarn;
  kube::DevicesConfig devices{};
  std::vector<std::string> runtime_classes{};  // that templates may name
  friend bool operator==(const OperatorParameters&, const OperatorParameters&) = default;
};
OperatorParameters operator_parameters(const kube::SchedulerConfigSpec& spec);

}  // namespace control
