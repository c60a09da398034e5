// Partition -> the scheduler's. config_acceptance.h judges what needs several objects (C1-C20).
// Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/partition.h"
#include "kube/api/node.h"
#include "scheduler/model/config.h"

namespace control {

// Checks as check_config does.
std::vector<std::string> check_partition(const kube::Partition& partition);

// Translates with the API's defaults for what is absent. `nodes`: those that exist; the hostlist or
// the selector picks from them. REQUIRES: check_partition found nothing.
sched::PartitionConfig translate_partition(const std::string& name, const kube::PartitionSpec& spec,
                                           std::span<const kube::Node* const> nodes);

}  // namespace control
