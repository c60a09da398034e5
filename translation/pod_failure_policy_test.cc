#include "translation/pod_failure_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A rule about exit codes: what to do if the code is one of the values ("In"), or none ("NotIn").
json on_codes(const char* action, const char* op, const json& values) {
  return {{"action", action}, {"onExitCodes", {{"operator", op}, {"values", values}}}};
}

// Returns a spec whose template has `others` containers besides `main`.
kube::BatchJobSpec with_rules(const json& rules, int others = 0) {
  json containers = json::array({{{"name", "main"}}});
  for (int i = 0; i < others; ++i) containers.push_back({{"name", "c" + std::to_string(i)}});
  const json spec{{"podFailurePolicy", {{"rules", rules}}},
                  {"template", {{"spec", {{"containers", containers}}}}}};
  return kube::decode<kube::BatchJob>({{"metadata", {{"name", "a"}}}, {"spec", spec}})->spec;
}

// -1 is the default, to count; NotIn matches no success. The first rule is about disruptions and
// matches no exit code, but it counts in the numbering.
TEST(PodFailurePolicy, TheFirstRuleThatMatchesDecides) {
  const kube::BatchJobSpec spec = with_rules(
      {{{"action", "Ignore"}, {"onPodConditions", json::array({{{"type", "DisruptionTarget"}}})}},
       on_codes("Ignore", "In", {3, 4}),
       on_codes("Count", "In", {5}),
       on_codes("FailJob", "NotIn", {6})});
  struct Case {
    int exit_code;
    FailureAction action;
    int rule;
  };
  for (const Case& each : {Case{3, FailureAction::kIgnore, 1}, Case{4, FailureAction::kIgnore, 1},
                           Case{5, FailureAction::kCount, 2}, Case{6, FailureAction::kCount, -1},
                           Case{7, FailureAction::kFailJob, 3}}) {
    const FailureVerdict verdict = judge_failure(spec, each.exit_code);
    EXPECT_EQ(verdict.action, each.action) << each.exit_code;
    EXPECT_EQ(verdict.rule, each.rule) << each.exit_code;
  }
  EXPECT_EQ(judge_failure(spec, 0).rule, -1) << "a container that succeeded is no failure";
}

// As in the batch group: each failure uses up one of backoffLimit.
TEST(PodFailurePolicy, WithoutOneEveryFailureCounts) {
  EXPECT_EQ(judge_failure({}, 1).action, FailureAction::kCount);
  EXPECT_THAT(failure_policy_problems({}), IsEmpty());
}

// The gang ends and starts as a whole, so nothing can be said about one index; its pods are never
// disrupted one by one, and an exit code of one container among several decides nothing.
TEST(PodFailurePolicy, RulesThatCannotHoldForAGangAreNamed) {
  const auto problems_of = [](const json& rule, int others = 0) {
    return failure_policy_problems(with_rules({on_codes("FailJob", "In", {1}), rule}, others));
  };
  EXPECT_THAT(problems_of(on_codes("FailIndex", "In", {2})),
              ElementsAre(HasSubstr("rules[1].action: FailIndex")));
  for (const char* action : {"FailJob", "Count"}) {
    EXPECT_THAT(problems_of({{"action", action},
                             {"onPodConditions", json::array({{{"type", "DisruptionTarget"}}})}}),
                ElementsAre(HasSubstr("rules[1].onPodConditions")));
  }
  EXPECT_THAT(
      problems_of({{"action", "Ignore"}, {"onPodConditions", json::array({{{"type", "Mine"}}})}}),
      ElementsAre(HasSubstr("rules[1].onPodConditions")));
  json named = on_codes("Ignore", "In", {2});
  named["onExitCodes"]["containerName"] = "main";
  EXPECT_THAT(problems_of(named), IsEmpty());
  EXPECT_THAT(problems_of(named, 1), ElementsAre(HasSubstr("containerName")));
}

}  // namespace
}  // namespace control
