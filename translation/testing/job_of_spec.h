// A Job as the API server has it, of which a test says what matters.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "api/job.h"

namespace control {

// Job team-a/myload with UID u-1 and this spec; its template has one container unless `spec` has
// another. The test fails if it cannot be decoded.
kube::Job job_of_spec(const nlohmann::json& spec);

}  // namespace control
