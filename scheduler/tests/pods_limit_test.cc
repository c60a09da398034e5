// NodeSpec::pods_max: the most pods of jobs that a node takes, since kubelet would refuse more.
// Slurm has no such limit.
#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

using Names = std::vector<std::string>;

NodeSpec with_room(NodeSpec spec, int pods) {
  spec.pods_max = pods;
  return spec;
}

JobRequest pods_per_task(JobRequest request, int tasks) {
  request.tasks = tasks;
  request.pod_per_task = true;
  return request;
}

void submit_at(Driver& driver, double t, const JobRequest& request) {
  driver.step(at(t), Submit{request});
  driver.step(at(t), Pass{});
}

// FORCE would stack four jobs; the node has room for two pods.
TEST(PodsLimit, StacksNoMoreJobsOnANodeThanItHasPods) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), {with_room(one[0], 2)}, make_replay()};
  submit_at(driver, 0, job(1, 1));
  submit_at(driver, 1, job(2, 1));
  submit_at(driver, 2, job(3, 1));
  EXPECT_NE(driver.view(2).state, JobState::kPending);
  EXPECT_EQ(driver.view(3).state, JobState::kPending);
  EXPECT_EQ(driver.view(3).reason, Reason::kResources);
  driver.step(at(3), JobGone{.job = JobId{1}, .verdict = JobState::kCompleted});
  driver.step(at(3), Pass{});
  EXPECT_EQ(driver.nodes_of(3), Names{"n1"});
}

// A job of a higher tier may end job 1, whose pod would make room. It does not need job 1's cores,
// so job 1 stays, and with it its pod.
TEST(PodsLimit, AVictimThatIsNotTakenMakesNoRoom) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("low", one, OverSubscribe::kNo, 1, 1),
                                 partition("high", one, OverSubscribe::kNo, 1, 2)});
  c.cluster.gang = false;
  c.cluster.select = SelectType::kConsTres;
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  Driver driver{c, {with_room(one[0], 1)}, make_replay()};
  JobRequest low = job(1, 1, "low"), high = job(2, 1, "high");
  low.tasks = high.tasks = 1;
  submit_at(driver, 0, low);
  submit_at(driver, 1, high);
  EXPECT_EQ(driver.view(1).state, JobState::kRunning);
  EXPECT_EQ(driver.view(2).state, JobState::kPending);
}

// Other pods have left the node, so it takes more pods of jobs. Nothing else happens that would
// let a pass look again.
TEST(PodsLimit, AHigherLimitLetsTheWaitingJobIn) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), {with_room(one[0], 0)}, make_replay()};
  submit_at(driver, 0, job(1, 1));
  EXPECT_EQ(driver.view(1).state, JobState::kPending);
  driver.step(at(1), NodeUpdate{with_room(one[0], 1)});
  driver.step(at(1), Pass{});
  EXPECT_EQ(driver.nodes_of(1), Names{"n1"});
}

// n1 takes two pods, n2 any number. Three tasks in three pods go to n2, two to n1.
TEST(PodsLimit, CountsAPodForEachTaskWhereTheJobWantsItSo) {
  const auto two = nodes("n", 1, 2);
  Driver driver{gang_linear({partition("p", two)}), {with_room(two[0], 2), two[1]}, make_replay()};
  submit_at(driver, 0, pods_per_task(job(1, 1), 3));
  EXPECT_EQ(driver.nodes_of(1), Names{"n2"});
  submit_at(driver, 1, pods_per_task(job(2, 1), 2));
  EXPECT_EQ(driver.nodes_of(2), Names{"n1"});
  submit_at(driver, 2, job(3, 2));  // a pod on each: n1 is full
  EXPECT_EQ(driver.view(3).state, JobState::kPending);
}

// n1 has free cores and no room for a pod until 600, the end of job 1; n2 has neither until job 2
// ends at 300.
TEST(PodsLimit, AnEstimateNamesNodesThatTakeThePods) {
  const auto two = nodes("n", 1, 2);
  Configuration c = gang_linear({partition("p", two, OverSubscribe::kNo, 1)});
  c.cluster.gang = false;
  c.cluster.select = SelectType::kConsTres;
  c.cluster.scheduler = SchedulerType::kBackfill;
  c.cluster.backfill.resolution = seconds(1);
  Driver driver{c, {with_room(two[0], 1), with_room(two[1], 1)}, make_replay()};
  const auto submit = [&](JobRequest request, int tasks, int minutes) {
    request.tasks = tasks;
    request.time_limit = std::chrono::minutes{minutes};
    submit_at(driver, 0, request);
  };
  // Job 1 takes one core of n1 and its only pod for 600 s, job 2 all of n2 for 300 s, so job 3
  // could have cores on n1 but no pod.
  submit(job(1, 1), 1, 10);
  submit(job(2, 1), 4, 5);
  submit(job(3, 1), 1, 1);
  driver.step(at(1), Pass{.main = true, .backfill = true});
  ASSERT_EQ(driver.nodes_of(2), Names{"n2"});
  EXPECT_EQ(driver.view(3).expected_start, at(300));
  ASSERT_EQ(driver.view(3).planned_nodes.size(), 1U);
  EXPECT_EQ(driver.scheduler().node_name(driver.view(3).planned_nodes[0]), "n2");
}

// The node's one pod is the victim's.
TEST(PodsLimit, WhatAVictimLeavesCounts) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("low", one, OverSubscribe::kNo, 1, 1),
                                 partition("high", one, OverSubscribe::kNo, 1, 2)});
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kRequeue;
  c.cluster.gang = false;
  Driver driver{c, {with_room(one[0], 1)}, make_replay()};
  submit_at(driver, 0, job(1, 1, "low"));
  ASSERT_EQ(driver.nodes_of(1), Names{"n1"});
  submit_at(driver, 1, job(2, 1, "high"));
  driver.step(at(2), Pass{});
  EXPECT_EQ(driver.nodes_of(2), Names{"n1"});
  EXPECT_EQ(driver.view(1).state, JobState::kPending);
}

}  // namespace
}  // namespace sched::testing
