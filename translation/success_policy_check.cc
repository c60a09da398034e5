#include "translation/success_policy_check.h"

#include "base/number_list.h"

namespace control {

// A rule that can never be met would let the gang run on after its driver is done.
std::vector<std::string> success_policy_problems(const kube::SuccessPolicy& policy) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const kube::SuccessRule& rule = policy.rules[i];
    const std::string path = "spec.lifecycle.successPolicy.rules[" + std::to_string(i) + "]";
    const auto named = base::parse_number_list(rule.succeeded_indexes, kPodIndexMax);
    if (!named) {
      problems.push_back(path + ".succeededIndexes: invalid list \"" + rule.succeeded_indexes +
                         "\" (example: 0,2-3)");
    } else if (named->empty() && !rule.succeeded_count) {
      problems.push_back(path + ": says nothing; set succeededIndexes, succeededCount or both");
    } else if (rule.succeeded_count &&
               (*rule.succeeded_count < 1 ||
                (!named->empty() &&
                 *rule.succeeded_count > static_cast<std::int64_t>(named->size())))) {
      problems.push_back(
          path + ".succeededCount: " + std::to_string(*rule.succeeded_count) +
          " cannot be met; use at least 1 and at most as many as succeededIndexes names");
    }
  }
  return problems;
}

}  // namespace control
