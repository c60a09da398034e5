#include "node-agent/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFrozenOfA[] = "kubegang_agent_pod_frozen_seconds_total{gang=\"default/a\"} ";

TEST(Metrics, AddsUpWhatThePodsOfAGangStoodStill) {
  Metrics metrics;
  EXPECT_THAT(metrics.render(), Not(HasSubstr("pod_frozen_seconds_total{")));
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}},
                        {.uid = "2", .gang = "default/a", .frozen = milliseconds{500}},
                        {.uid = "3", .gang = "default/b", .frozen = seconds{9}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "2.5\n"));
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{3}},
                        {.uid = "2", .gang = "default/a", .frozen = milliseconds{500}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "3.5\n"));
}

TEST(Metrics, KeepsTheTimeOfAGangsPodThatEndedAndForgetsAGangThatIsNotListedAnyMore) {
  Metrics metrics;
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}},
                        {.uid = "2", .gang = "default/a", .frozen = seconds{1}}});
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "3\n"));
  metrics.count_frozen({});
  EXPECT_THAT(metrics.render(), Not(HasSubstr("gang=\"default/a\"")));
}

TEST(Metrics, TellThePolicyOfTheSwitchersThread) {
  Metrics metrics;
  metrics.set_policy(ThreadPolicy::kCfs);
  EXPECT_THAT(metrics.render(), HasSubstr("kubegang_agent_switcher_policy{policy=\"cfs\"} 1\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("kubegang_agent_switcher_policy{policy=\"fifo\"} 0\n"));
}

TEST(Metrics, TellHowLateTheSwitchesAtBoundariesWere) {
  Metrics metrics;
  SwitchReport report{.cause = SwitchCause::kBoundary, .froze_count = 1, .thawed_count = 1};
  report.last_write = report.due + milliseconds{3};
  report.slot = 58;
  metrics.record(report);
  report.slot = 59;
  report.cause = SwitchCause::kAssignment;  // was not due at a boundary
  metrics.record(report);
  const std::string text = metrics.render();
  EXPECT_THAT(text,
              HasSubstr("kubegang_agent_switch_lateness_seconds_count{phase=\"last_write\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("kubegang_agent_switch_lateness_seconds_sum{phase=\"last_write\"} 0.003\n"));
  EXPECT_THAT(text, HasSubstr("kubegang_agent_freeze_confirm_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("kubegang_agent_boundary_index 58\n"));
  EXPECT_THAT(text, HasSubstr("kubegang_agent_boundary_last_write_seconds 0.003\n"));
}

}  // namespace
}  // namespace agent
