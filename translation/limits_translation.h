// Limits of QOS and accounts -> the scheduler's. Pure.
#pragma once

#include <string>

#include "api/account.h"
#include "api/qos.h"
#include "scheduler/model/limits.h"
#include "translation/spec_problems.h"

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
