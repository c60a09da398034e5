// Where jobs may need to be stopped for each other.
#include "operator/nodes/turns.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using sched::OverSubscribe;
using sched::PreemptMode;
using sched::PreemptType;

// Partitions a and b on the node n1, b of a higher tier; without preemption, and exclusive.
struct TurnsTest : testing::Test {
  TurnsTest() {
    configuration.cluster.gang = true;
    configuration.cluster.select = sched::SelectType::kLinear;
    configuration.partitions = {
        {.name = "a", .nodes = {"n1"}, .over_subscribe = OverSubscribe::kExclusive},
        {.name = "b", .nodes = {"n1"}, .over_subscribe = OverSubscribe::kExclusive}};
  }
  bool possible() const { return Turns{configuration}.possible_on("n1"); }

  sched::PartitionConfig& a() { return configuration.partitions[0]; }
  sched::PartitionConfig& b() { return configuration.partitions[1]; }

  sched::Configuration configuration;
  sched::ClusterParameters& cluster = configuration.cluster;
};

// There no agent is needed: clusters that use none of this can do without the DaemonSet. With
// select/cons_tres jobs share a node, but never a core.
TEST_F(TurnsTest, AreNotPossibleWhereEachJobHasItsNodesAlone) {
  EXPECT_FALSE(possible());
  a().over_subscribe = OverSubscribe::kNo;
  EXPECT_FALSE(possible());
  cluster.select = sched::SelectType::kConsTres;
  EXPECT_FALSE(possible()) << "jobs on cores of their own";
  EXPECT_FALSE(Turns{configuration}.possible_on("elsewhere"));
}

// Rule 2: with one share there is nothing to take turns with.
TEST_F(TurnsTest, ArePossibleInAPartitionThatStacksJobs) {
  for (const auto share : {OverSubscribe::kForce, OverSubscribe::kYes}) {
    a().over_subscribe = share;
    a().max_share = 1;
    EXPECT_FALSE(possible());
    a().max_share = 2;
    EXPECT_TRUE(possible());
  }
  cluster.gang = false;
  EXPECT_FALSE(possible()) << "nothing would stop them";
}

// Rule 3, one condition after the other. A node that is left out wrongly would run two gangs at
// once; one too many costs a timetable.
TEST_F(TurnsTest, ArePossibleBetweenTiersWhereTheHigherStopsTheLower) {
  b().priority_tier = 2;
  EXPECT_FALSE(possible());
  cluster.preempt_type = PreemptType::kPartitionPriority;
  cluster.preempt_mode = PreemptMode::kRequeue;
  EXPECT_FALSE(possible()) << "victims are gone before the job starts";
  a().preempt_mode = PreemptMode::kSuspend;
  EXPECT_TRUE(possible());
  a().preempt_mode.reset();
  b().over_subscribe = OverSubscribe::kForce;
  b().max_share = 1;
  EXPECT_TRUE(possible()) << "it shares its nodes";
  b().over_subscribe = OverSubscribe::kNo;
  EXPECT_FALSE(possible());
  cluster.select = sched::SelectType::kConsTres;
  EXPECT_TRUE(possible()) << "it starts above its victims";
  b().nodes = {"n2"};
  EXPECT_FALSE(possible()) << "they share no node";
}

// Rule 4: it is enough that one QOS suspends, whatever the cluster's mode is.
TEST_F(TurnsTest, ArePossibleWhereAQosSuspends) {
  cluster.select = sched::SelectType::kConsTres;
  cluster.preempt_type = PreemptType::kQos;
  cluster.preempt_mode = PreemptMode::kCancel;
  configuration.qos = {{.name = "urgent"}};
  EXPECT_FALSE(possible());
  configuration.qos[0].preempt_mode = PreemptMode::kSuspend;
  EXPECT_TRUE(possible());
}

// Rule 5.
TEST_F(TurnsTest, ArePossibleWhereCpusAreCountedAndNotBound) {
  cluster.select = sched::SelectType::kConsTres;
  cluster.task_affinity = false;
  EXPECT_FALSE(possible()) << "whole nodes";
  a().over_subscribe = OverSubscribe::kNo;
  EXPECT_TRUE(possible());
}

// An agent binds pods to cores, and tells through the timetable's status which cores there are.
// With gang off nothing is frozen, but the cores must be known all the same.
TEST_F(TurnsTest, AgentsAndTimetablesAreNeededForThemAndForCores) {
  const auto needs = [this] {
    const Turns turns{configuration};
    return std::string{turns.need_agent("n1") ? "agent " : ""} +
           (turns.need_timetable("n1") ? "timetable" : "");
  };
  EXPECT_EQ(needs(), "");
  cluster.select = sched::SelectType::kConsTres;
  EXPECT_EQ(needs(), "timetable") << "its agent tells there which cores it has";
  a().over_subscribe = OverSubscribe::kNo;
  EXPECT_EQ(needs(), "agent timetable") << "pods are bound to cores";
  cluster.gang = false;
  EXPECT_EQ(needs(), "timetable");
  cluster.gang = true;
  cluster.select = sched::SelectType::kLinear;
  EXPECT_EQ(needs(), "");
  a().over_subscribe = OverSubscribe::kForce;
  EXPECT_EQ(needs(), "agent timetable");
}

}  // namespace
}  // namespace control
