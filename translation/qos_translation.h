// QOS -> the scheduler's. config_acceptance.h judges what needs several objects (C1-C20).
// Pure.
#pragma once

#include <string>
#include <vector>

#include "api/qos.h"
#include "scheduler/model/config.h"

namespace control {

// Checks as check_config does.
std::vector<std::string> check_qos(const kube::Qos& qos);

// Translates with the API's defaults for what is absent. REQUIRES: check_qos found nothing.
sched::QosConfig translate_qos(const std::string& name, const kube::QosSpec& spec);

}  // namespace control
