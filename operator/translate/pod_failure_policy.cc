#include "operator/translate/pod_failure_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace control {
namespace {

using Json = nlohmann::json;

Json rules_of(const kube::BatchJobSpec& spec) {
  if (spec.pod_failure_policy.empty()) return Json::array();
  return spec.pod_failure_policy.json().value("rules", Json::array());
}

// Success is no failure that NotIn could match.
bool matches(const Json& on_exit_codes, int exit_code) {
  if (exit_code == 0) return false;
  const Json values = on_exit_codes.value("values", Json::array());
  const bool is_listed = std::find(values.begin(), values.end(), exit_code) != values.end();
  return is_listed == (on_exit_codes.value("operator", "") == "In");
}

FailureAction action_of(const Json& rule) {
  const std::string action = rule.value("action", "");
  if (action == "FailJob") return FailureAction::kFailJob;
  return action == "Ignore" ? FailureAction::kIgnore : FailureAction::kCount;
}

bool ignores_disruptions(const Json& rule) {
  const Json conditions = rule.value("onPodConditions", Json::array());
  return rule.value("action", "") == "Ignore" &&
         std::all_of(conditions.begin(), conditions.end(), [](const Json& condition) {
           return condition.value("type", "") == "DisruptionTarget";
         });
}

std::size_t count_containers(const kube::BatchJobSpec& spec) {
  const Json pod = spec.pod_template.json().value("spec", Json::object());
  return pod.value("containers", Json::array()).size() +
         pod.value("initContainers", Json::array()).size();
}

}  // namespace

FailureVerdict judge_failure(const kube::BatchJobSpec& spec, int exit_code) {
  const Json rules = rules_of(spec);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto on_exit_codes = rules[i].find("onExitCodes");
    if (on_exit_codes == rules[i].end() || !matches(*on_exit_codes, exit_code)) continue;
    return {action_of(rules[i]), static_cast<int>(i)};
  }
  return {};
}

std::vector<std::string> failure_policy_problems(const kube::BatchJobSpec& spec) {
  std::vector<std::string> problems;
  const Json rules = rules_of(spec);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Json& rule = rules[i];
    const std::string path = "spec.podFailurePolicy.rules[" + std::to_string(i) + "].";
    if (rule.value("action", "") == "FailIndex") {
      problems.push_back(path +
                         "action: FailIndex is not supported, a gang is restarted as a "
                         "whole; use FailJob, Ignore or Count");
    } else if (!rule.contains("onExitCodes") && !ignores_disruptions(rule)) {
      problems.push_back(path +
                         "onPodConditions: only the action Ignore on DisruptionTarget is "
                         "supported, which is what happens to every gang; remove the rule");
    } else if (rule.contains("onExitCodes") && rule["onExitCodes"].contains("containerName") &&
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
