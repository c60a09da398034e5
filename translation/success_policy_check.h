// The faults in the rules of a successPolicy, as sentences.
#pragma once

#include <string>
#include <vector>

#include "api/job.h"

namespace control {

// The highest index that a rule may name; it keeps a list of numbers from growing without limit.
inline constexpr int kPodIndexMax = 99'999;

// Returns a sentence for each rule that says nothing or can never be met.
std::vector<std::string> success_policy_problems(const kube::SuccessPolicy& policy);

}  // namespace control
