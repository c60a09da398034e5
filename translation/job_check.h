// The checks of one Job object by itself: the OpenAPI bounds and CEL rules of its CRD once
// more (it may have been stored under an older one). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/job.h"

namespace control {

// No image and no init container is worth more: a job holds its nodes while its pods start.
inline constexpr base::Duration kStartTimeoutMax = std::chrono::hours{2};

// The bounds of priorities and nice values.
inline constexpr std::int64_t kPriorityMax = 4'294'967'295;
inline constexpr std::int32_t kNiceMax = 2'147'483'645;

// Whole sentences that name the field, the value and what to do; empty = legal. The template is
// checked by check_template.
std::vector<std::string> check_job(const kube::Job& job);

// Returns sentences about forbidden changes. An allocated job may change only spec.control (without
// hold), timeLimit, priority and nice; no job may change podPolicy, take back cancel or lower
// the counters of requests. The template is not looked at (TemplateBook notices).
std::vector<std::string> check_change(const kube::JobSpec& before, const kube::JobSpec& now,
                                      bool is_allocated);
// Returns `before` with what of `now` may change: of a change that is refused the part that is
// allowed. REQUIRES: both are of the same job.
kube::JobSpec allowed_change(const kube::JobSpec& before, const kube::JobSpec& now,
                             bool is_allocated);

}  // namespace control
