// Limits of QOS and accounts -> the scheduler's. Pure.
#pragma once

#include <string>

#include "api/account.h"
#include "api/qos.h"
#include "operator/translate/spec_problems.h"
#include "scheduler/model/limits.h"

namespace control {

// `field`: where they stand, such as "spec.limits". Absent = nothing is wrong.
void check_limits(const std::string& field, const std::optional<kube::QosLimits>& limits,
                  SpecProblems& problems);
void check_limits(const std::string& field, const std::optional<kube::AccountLimits>& limits,
                  SpecProblems& problems);

// Absent = no limits.
sched::Limits translate(const std::optional<kube::QosLimits>& limits);
sched::Limits translate(const std::optional<kube::AccountLimits>& limits);

}  // namespace control
