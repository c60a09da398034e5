// Rules of the selection of nodes (chapters 1, 4 and 5) that no recording shows, one test each,
// named after the rule.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

// One partition, neither gang nor preemption.
class SelectRules : public ::testing::Test {
 protected:
  Driver& begin(SelectType select, std::vector<NodeSpec> nodes) {
    c_.cluster.select = select;
    c_.cluster.gang = false;
    c_.partitions = {partition("p", nodes, OverSubscribe::kNo, 1)};
    c_.partitions.front().is_default = true;
    driver_ = std::make_unique<Driver>(c_, std::move(nodes), make_replay());
    return *driver_;
  }
  // Returns where it starts, "" while it waits.
  std::string submit(const JobRequest& request) {
    const base::Instant now = at(static_cast<double>(request.id.number()));
    driver_->step(now, Submit{request});
    driver_->step(now, Pass{});
    std::string names;
    for (const std::string& name : driver_->nodes_of(request.id.number())) {
      names += (names.empty() ? "" : " ") + name;
    }
    return names;
  }
  Reason reason(std::int64_t id) const { return driver_->view(id).reason; }

  Configuration c_ = gang_linear({});
  std::unique_ptr<Driver> driver_;
};

std::vector<NodeSpec> with_features(std::vector<NodeSpec> nodes,
                                    const std::vector<std::vector<std::string>>& features) {
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].features = features[i];
  return nodes;
}

// 4.4.3 (recorded): a node whose only job its user has suspended is idle, and comes before an empty
// one further on.
TEST_F(SelectRules, R4_4_3_IdleNodesAreThoseWithUserSuspendedJobsToo) {
  begin(SelectType::kLinear, nodes("n", 1, 3));
  EXPECT_EQ(submit(job(1, 1)), "n1");
  driver_->step(at(2), UserSuspend{JobId{1}});
  EXPECT_EQ(submit(job(3, 1)), "n1");
  EXPECT_EQ(submit(job(4, 1)), "n2");
}

// 1.8 step 6: "raises the CPUs needed per node to ceil(req / max)": ceil(2500 / 1000) = 3, and n1
// has 2.
TEST_F(SelectRules, R1_8_6_MemoryPerNodeAboveTheLimitPerCpuNeedsLargerNodes) {
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    c_.cluster.max_memory.per_cpu = MemoryMiB{1000};
    begin(select, {node("n1", 2), node("n2", 4)});
    JobRequest request = job(1, 1);
    request.memory = MemoryPerNode{MemoryMiB{2500}};
    EXPECT_EQ(submit(request), "n2");
  }
}

// 4.2 step 2: "when CPUs (adjusted for tasks-per-core) … are not met". n1 has 4 CPUs on 2 cores,
// which hold two tasks of three.
TEST_F(SelectRules, R4_2_2_ThreadsThatTasksMayNotUseAreNoCpus) {
  NodeSpec threaded = node("n1", 4);
  threaded.cores_per_socket = threaded.threads_per_core = 2;
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    begin(select, {threaded, node("n2", 4)});
    JobRequest request = job(1, 1);
    request.tasks = request.tasks_per_node = 3;
    request.tasks_per_core = 1;
    EXPECT_EQ(submit(request), "n2");
  }
}

// 4.2 step 4: the nodes of a counted feature are asked for what one node must offer, not for the
// whole job: the two nodes with a have 8 CPUs, and the job needs 12.
TEST_F(SelectRules, R4_2_4_CountedNodesNeedNotHoldTheWholeJob) {
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    begin(select, with_features(nodes("n", 1, 4), {{"a"}, {"a"}, {"b"}, {"b"}}));
    JobRequest request = job(1, 3);
    request.tasks = 12;
    request.constraint = "[a*2&b*1]";
    EXPECT_EQ(submit(request), "n1 n2 n3");
  }
}

// 4.2 step 4: a required node is not among those that are counted (as recorded).
TEST_F(SelectRules, R4_2_4_RequiredNodesDoNotCount) {
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    begin(select, with_features(nodes("n", 1, 4), {{"a"}, {"a"}, {"b"}, {"b"}}));
    JobRequest request = job(1, 3);
    request.constraint = "[a*1&b*1]";
    request.required_nodes = {"n2"};
    EXPECT_EQ(submit(request), "n1 n2 n3");
    request.id = JobId{2};
    request.min_nodes = 2;
    request.max_nodes = 2;
    EXPECT_EQ(submit(request), "");
    EXPECT_EQ(reason(2), Reason::kBadConstraints);
  }
}

// 4.2 step 4 and 3.6 step 4: each choice looks at the lightest nodes first.
TEST_F(SelectRules, R4_2_4_CountedNodesAreTheLightest) {
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    std::vector<NodeSpec> all = with_features(nodes("n", 1, 4), {{"a"}, {"a"}, {"a"}, {"b"}});
    all[0].weight = all[1].weight = 5;
    all[3].weight = 9;
    begin(select, all);
    JobRequest request = job(1, 2);
    request.constraint = "[a*1&b*1]";
    EXPECT_EQ(submit(request), "n3 n4");
  }
}

// 3.6 step 5 asks the same question of all nodes: what their features never allow is held.
TEST_F(SelectRules, R3_6_5_FeaturesThatNeverSufficeAreNotBusy) {
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    begin(select, with_features(nodes("n", 1, 4), {{"a"}, {"a"}, {"b"}, {"b"}}));
    std::int64_t id = 1;
    for (const char* constraint : {"[a|b]", "[a*3]", "[a*2&b*2]"}) {
      JobRequest request = job(id, 3);
      request.constraint = constraint;
      EXPECT_EQ(submit(request), "");
      EXPECT_EQ(reason(id), Reason::kBadConstraints) << constraint;
      ++id;
    }
  }
}

// 4.4.4, recorded. A job that takes idle nodes only gets the first ones; a job that may share or
// preempt gets the run that fits best.
TEST_F(SelectRules, R4_4_4_IdleNodesAreTakenFromTheFirstOn) {
  const auto place = [&](const JobRequest& request) {
    JobRequest holder = job(1, 1);
    holder.required_nodes = {"n3"};
    EXPECT_EQ(submit(holder), "n3");
    return submit(request);
  };
  begin(SelectType::kLinear, nodes("n", 1, 6));
  EXPECT_EQ(place(job(2, 3)), "n1 n2 n4");
  JobRequest range = job(2, 2);
  range.max_nodes = 4;
  begin(SelectType::kLinear, nodes("n", 1, 6));
  EXPECT_EQ(place(range), "n1 n2 n4 n5");
  JobRequest with_fifth = job(2, 2);
  with_fifth.required_nodes = {"n5"};
  begin(SelectType::kLinear, nodes("n", 1, 6));
  EXPECT_EQ(place(with_fifth), "n1 n5");
  begin(SelectType::kLinear, nodes("n", 1, 6));
  c_.cluster.preempt_type = PreemptType::kPartitionPriority;
  c_.cluster.preempt_mode = PreemptMode::kCancel;
  driver_->step(at(1), Configure{std::make_shared<const Configuration>(c_)});
  EXPECT_EQ(place(job(2, 3)), "n4 n5 n6");
}

// The same where nodes differ: one node more at a time until they suffice, then the large ones.
TEST_F(SelectRules, R4_4_4_IdleNodesAreAddedUntilTheySuffice) {
  std::vector<NodeSpec> mixed = nodes("n", 1, 3, 2);
  mixed.push_back(node("n4", 6));
  mixed.push_back(node("n5", 4));
  const auto place = [&](int nodes_count, int tasks) {
    begin(SelectType::kLinear, mixed);
    JobRequest request = job(1, nodes_count);
    request.tasks = tasks;
    return submit(request);
  };
  // n1 to n4 have 12 CPUs, enough for 7: best fit of these takes the largest, n4, and of the equal
  // ones the last.
  EXPECT_EQ(place(2, 7), "n3 n4");
  // n4 and n3 have 8 CPUs, one too few, so n5 is added.
  EXPECT_EQ(place(2, 9), "n4 n5");
  EXPECT_EQ(place(3, 9), "n2 n3 n4");
}

// 3.6 step 4: required nodes belong to every set, whatever they weigh (recorded).
TEST_F(SelectRules, R3_6_4_RequiredNodesOfOtherWeights) {
  std::vector<NodeSpec> all = nodes("n", 1, 4);
  all[0].weight = all[1].weight = 10;
  begin(SelectType::kLinear, all);
  JobRequest request = job(1, 2);
  request.required_nodes = {"n1"};
  EXPECT_EQ(submit(request), "n1 n3");
}

}  // namespace
}  // namespace sched::testing
