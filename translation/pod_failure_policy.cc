#include "translation/pod_failure_policy.h"

#include <algorithm>

#include "kube/api/pod.h"

namespace control {
namespace {

// Returns an empty list if the Job has no policy, so that callers need not tell the two apart.
const std::vector<kube::BatchFailureRule>& rules_of(const kube::BatchJobSpec& spec) {
  static const std::vector<kube::BatchFailureRule> kNone;
  return spec.pod_failure_policy ? spec.pod_failure_policy->rules : kNone;
}

// Success is not a failure that NotIn could match. An operator other than In and NotIn cannot be
// stored: the API server checks it.
bool matches(const kube::BatchExitCodes& codes, int exit_code) {
  if (exit_code == 0) return false;
  const bool is_listed =
      std::find(codes.values.begin(), codes.values.end(), exit_code) != codes.values.end();
  return is_listed == (codes.op == "In");
}

// FailIndex has been refused before a gang is made (failure_policy_problems).
FailureAction action_of(const kube::BatchFailureRule& rule) {
  if (rule.action == "FailJob") return FailureAction::kFailJob;
  return rule.action == "Ignore" ? FailureAction::kIgnore : FailureAction::kCount;
}

// Evictions are not failures of the gang here either, so such a rule asks for what happens anyway.
bool ignores_disruptions(const kube::BatchFailureRule& rule) {
  return rule.action == "Ignore" &&
         std::all_of(
             rule.on_pod_conditions.begin(), rule.on_pod_conditions.end(),
             [](const kube::BatchPodCondition& each) { return each.type == "DisruptionTarget"; });
}

// 0 if the template cannot be read.
std::size_t count_containers(const kube::BatchJobSpec& spec) {
  const auto pod = kube::decode_template(spec.pod_template);
  return pod.ok() ? pod->spec.containers.size() + pod->spec.init_containers.size() : 0;
}

}  // namespace

// The first rule that matches decides, as in the batch group's controller. Rules about conditions
// of pods never match: the only ones that are accepted say what holds for every gang
// (failure_policy_problems).
FailureVerdict judge_failure(const kube::BatchJobSpec& spec, int exit_code) {
  const auto& rules = rules_of(spec);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].on_exit_codes || !matches(*rules[i].on_exit_codes, exit_code)) continue;
    return {action_of(rules[i]), static_cast<int>(i)};
  }
  return {};
}

// The policy of the batch group is about single pods, a gang ends as a whole. A rule must mean the
// same in both worlds, or the Job is refused: a rule that is silently ignored would be found out
// only when something fails.
std::vector<std::string> failure_policy_problems(const kube::BatchJobSpec& spec) {
  std::vector<std::string> problems;
  const auto& rules = rules_of(spec);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const kube::BatchFailureRule& rule = rules[i];
    const std::string path = "spec.podFailurePolicy.rules[" + std::to_string(i) + "].";
    if (rule.action == "FailIndex") {
      problems.push_back(path +
                         "action: FailIndex is not supported, a gang is restarted as a "
                         "whole; use FailJob, Ignore or Count");
    } else if (!rule.on_exit_codes && !ignores_disruptions(rule)) {
      problems.push_back(path +
                         "onPodConditions: only the action Ignore on DisruptionTarget is "
                         "supported, which is what happens to every gang; remove the rule");
      // The name of a single container cannot be wrong, since the API server checks that it exists.
    } else if (rule.on_exit_codes && rule.on_exit_codes->container_name &&
               count_containers(spec) != 1) {
      problems.push_back(path +
                         "onExitCodes.containerName: a gang knows only the exit code of the "
                         "container that failed first; remove containerName, or the other "
                         "containers");
    }
  }
  return problems;
}

}  // namespace control
