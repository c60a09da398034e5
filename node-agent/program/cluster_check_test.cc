#include "node-agent/program/cluster_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using ::testing::HasSubstr;
using enum kube::ConditionStatus;

// Returns a node of which the agent has reported these conditions.
kube::NodeTimetable node(const std::string& name, std::vector<kube::Condition> conditions) {
  kube::NodeTimetable object;
  object.metadata.name = name;
  object.status.conditions = std::move(conditions);
  return object;
}

kube::Condition condition(const std::string& type, kube::ConditionStatus status,
                          const std::string& reason, const std::string& message = "") {
  return {.type = type, .status = status, .reason = reason, .message = message};
}

// The kill switch and a weak grant are decisions of people, and a clock may be allowed to be off:
// they are shown and do not fail the check.
TEST(ClusterCheck, PassesIfEveryNodeObeysAndHasWhatItNeeds) {
  const ClusterCheck check = check_cluster(
      {node("n1", {condition("Ready", kTrue, "Obeying"), condition("Granted", kTrue, "AllGranted"),
                   condition("ClockSynchronized", kTrue, "Synchronized")}),
       node("n2",
            {condition("Ready", kFalse, "KillSwitch", "a person said so"),
             condition("Granted", kTrue, "Limited", "FIFO: refused"),
             condition("ClockSynchronized", kFalse, "NotSynchronized", "run an NTP client")})},
      {});
  EXPECT_TRUE(check.passed);
  EXPECT_EQ(check.table,
            "n1: Obeying, AllGranted, Synchronized\n"
            "n2: KillSwitch, Limited, NotSynchronized\n"
            "    a person said so\n    FIFO: refused\n    run an NTP client\n");
}

// A good node beside one that has not reported, lacks a grant, or has stopped. `helm test` fails by
// that, so a gang is not started on such a cluster.
TEST(ClusterCheck, FailsForASingleNode) {
  const kube::NodeTimetable good =
      node("n1", {condition("Ready", kTrue, "Obeying"), condition("Granted", kTrue, "AllGranted")});
  const kube::Condition ready = condition("Ready", kTrue, "Obeying");
  for (const auto& [conditions, words] :
       std::vector<std::pair<std::vector<kube::Condition>, std::string>>{
           {{}, "n2: not said yet, not said yet"},
           {{ready}, "n2: Obeying, not said yet"},
           {{ready, condition("Granted", kFalse, "Missing", "freezer: read-only")},
            "n2: Obeying, Missing, not said yet\n    freezer: read-only"},
           {{condition("Ready", kFalse, "Stopped"), condition("Granted", kTrue, "AllGranted")},
            "n2: Stopped, AllGranted"}}) {
    const ClusterCheck check = check_cluster({good, node("n2", conditions)}, {});
    EXPECT_FALSE(check.passed) << words;
    EXPECT_THAT(check.table, HasSubstr(words));
  }
}

// Without a timetable there is nothing to check: a failure if no partition has nodes, since no job
// could run; all right if there are nodes, but no turns (whole nodes, without gang).
TEST(ClusterCheck, WithoutTimetablesThePartitionsDecide) {
  kube::Partition partition;
  for (const std::optional<std::int32_t> nodes : {std::optional<std::int32_t>{}, {0}}) {
    partition.status.nodes = nodes;
    const ClusterCheck check = check_cluster({}, {partition});
    EXPECT_FALSE(check.passed);
    EXPECT_THAT(check.table, HasSubstr("create a Partition"));
  }
  partition.status.nodes = 2;
  const ClusterCheck check = check_cluster({}, {{}, partition});
  EXPECT_TRUE(check.passed);
  EXPECT_THAT(check.table, HasSubstr("nothing to do"));
}

}  // namespace
}  // namespace agent
