// Jobs of the batch group: their defaults, and which statuses an API server takes from who runs
// them in place of its own controller (spec.managedBy). The contract suite tries each rule here and
// on a real server. SOURCE: pkg/registry/batch/job/strategy.go, pkg/apis/batch/validation.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"

namespace devcluster {

void default_batch_job(nlohmann::json& job);

// `previous`: what it replaces, or null.
std::vector<Cause> check_batch_job(const nlohmann::json& job, const nlohmann::json* previous);

}  // namespace devcluster
