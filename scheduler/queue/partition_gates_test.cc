// The gates that keep a job out of a partition's queue (3.2 step 5), one line for each gate.
#include "scheduler/queue/partition_gates.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class PartitionGates : public ::testing::Test {
 protected:
  PartitionGates() {
    configuration_ = gang_linear({partition("p", nodes("n", 1, 4))});
    request_ = job(1, 1, "p");
    request_.user = "ada";
  }
  PartitionConfig& p() { return configuration_.partitions.front(); }
  QosConfig& qos(const std::string& name) {
    request_.qos = name;
    return configuration_.qos.emplace_back(QosConfig{.name = name});
  }
  // "" = the job may wait.
  std::string refusal() const {
    Cluster cluster;
    for (const NodeSpec& spec : nodes("n", 1, 4)) EXPECT_TRUE(cluster.upsert_node(spec).ok());
    cluster.configure(configuration_);
    cluster.settle();
    const auto refused =
        refused_by_partition(cluster, request_, cluster.find_partition("p").value());
    return refused ? refused->message : "";
  }

  Configuration configuration_;
  JobRequest request_;
};

TEST_F(PartitionGates, AnOrdinaryJobMayWait) {
  EXPECT_EQ(refusal(), "");
}

TEST_F(PartitionGates, TheQosMustExist) {
  request_.qos = "gold";
  EXPECT_EQ(refusal(), "there is no QOS gold");
}

TEST_F(PartitionGates, AClosedPartitionRefusesAndADrainingOneDoesNot) {
  p().state = PartitionState::kDown;
  EXPECT_EQ(refusal(), "partition p is down");
  p().state = PartitionState::kInactive;
  EXPECT_EQ(refusal(), "partition p is inactive");
  p().state = PartitionState::kDrain;
  EXPECT_EQ(refusal(), "");
}

TEST_F(PartitionGates, AListOfAllowedUsersMakesTheDeniedOnesVoid) {
  p().deny_users = {"ada"};
  EXPECT_EQ(refusal(), "partition p is not open to ada");
  p().allow_users = {"ada"};
  EXPECT_EQ(refusal(), "");
  p().allow_users = {"bob"};
  EXPECT_EQ(refusal(), "partition p is not open to ada");
}

TEST_F(PartitionGates, AllowedQosAreAskedOfJobsWithoutOneToo) {
  p().allow_qos = {"gold"};
  EXPECT_EQ(refusal(), "partition p is not open to jobs without a QOS");
  qos("gold");
  EXPECT_EQ(refusal(), "");
}

TEST_F(PartitionGates, TheTimeLimitOfThePartitionCountsUnlessTheQosWaivesIt) {
  p().max_time = std::chrono::minutes{10};
  request_.time_limit = std::chrono::minutes{20};
  EXPECT_EQ(refusal(), "asks for 20 minutes; partition p allows 10 minutes");
  request_.time_min = std::chrono::minutes{10};  // it would take less
  EXPECT_EQ(refusal(), "");
  request_.time_min.reset();
  qos("long").partition_time_limit = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(PartitionGates, TheQosLimitsTimeAndNodes) {
  QosConfig& small = qos("small");
  small.limits.job_wall = std::chrono::minutes{5};
  request_.time_limit = std::chrono::minutes{6};
  EXPECT_EQ(refusal(), "asks for 6 minutes; QOS small allows 5 minutes");
  request_.time_limit.reset();
  small.limits.job_tres[Tres::kNode] = 1;
  request_.min_nodes = 2;
  EXPECT_EQ(refusal(), "asks for 2 nodes; QOS small allows 1");
}

TEST_F(PartitionGates, ARangeThatReachesBeyondThePartitionsMaximumIsRefused) {
  p().max_nodes = 2;
  request_.nodes_given = true;
  request_.min_nodes = 1;
  request_.max_nodes = 3;
  EXPECT_EQ(refusal(), "asks for 3 nodes; partition p allows 1 to 2");
  request_.max_nodes = 2;
  EXPECT_EQ(refusal(), "");
}

// One task on one node: 4 × 300 MiB are above 1000, 3 × 300 are not.
TEST_F(PartitionGates, MemoryPerNodeIsWhatItsCpusAskForAtLeast) {
  p().max_memory.per_node = MemoryMiB{1000};
  request_.memory = MemoryPerCpu{MemoryMiB{300}};
  request_.cpus_per_task = 4;
  EXPECT_EQ(refusal(), "asks for 1200 MiB per node; partition p allows 1000");
  request_.cpus_per_task = 3;
  EXPECT_EQ(refusal(), "");
}

// The first gate that refuses gives the reason.
TEST_F(PartitionGates, AClosedPartitionComesBeforeItsLimits) {
  p().max_time = std::chrono::minutes{10};
  request_.time_limit = std::chrono::minutes{20};
  p().state = PartitionState::kDown;
  EXPECT_EQ(refusal(), "partition p is down");
}

}  // namespace
}  // namespace sched::testing
