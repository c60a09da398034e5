// 2.4: every job that waits says why, in Slurm's word and one sentence with numbers.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class Reasons : public ::testing::Test {
 protected:
  std::vector<NodeSpec> four = nodes("n", 1, 4);
  Configuration c = exclusive_nodes();

  Configuration exclusive_nodes() const {
    Configuration made = gang_linear({partition("p", four, OverSubscribe::kNo)});
    made.cluster.gang = false;
    return made;
  }
  // Returns the last word on the job after the requests, in order, and one pass. Sets `reason` too.
  std::string told(const std::vector<JobRequest>& requests, std::int64_t of) {
    Driver driver{c, four, make_replay()};
    for (const JobRequest& request : requests) driver.step(at(1), Submit{request});
    driver.step(at(2), Pass{});
    return last_word(driver, of);
  }
  // Sets `reason` too.
  std::string last_word(Driver& driver, std::int64_t of) {
    reason = driver.view(of).reason;
    std::string sentence = "nothing";
    for (const Decision& decision : driver.take_log()) {
      const auto* waits = std::get_if<Waits>(&decision);
      if (waits != nullptr && waits->job == JobId{of}) sentence = waits->message;
    }
    return sentence;
  }

  Reason reason{};
};

// Job 1 has three of four nodes; job 2 wants two.
TEST_F(Reasons, Resources) {
  EXPECT_EQ(told({job(1, 3), job(2, 2)}, 2), "needs 2 nodes; of 4 that could hold it 1 are idle");
  EXPECT_EQ(reason, Reason::kResources);
}

// Job 1 is of the same tier as job 3, and job 2 has not started: no candidate.
TEST_F(Reasons, ResourcesWhereOthersCouldBePreempted) {
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  c.partitions.push_back(partition("high", four, OverSubscribe::kNo, 1, 2));
  JobRequest shielded = job(1, 3, "high");
  EXPECT_EQ(told({shielded, job(2, 1, "p"), job(3, 2, "high")}, 3),
            "needs 2 nodes; of 4 that could hold it 1 are idle");
}

// Job 2 has failed high, whose two nodes are withheld from the jobs of p.
TEST_F(Reasons, ResourcesWhenTooFewNodesAreLeftForItsPartition) {
  c.partitions.push_back(partition("high", {four[0], four[1]}, OverSubscribe::kNo, 1, 2));
  EXPECT_EQ(
      told({job(1, 2, "high"), job(2, 1, "high"), job(3, 3, "p")}, 3),
      "needs 3 nodes and 2 are left; the others are down, drained or kept for jobs ahead of it");
  EXPECT_EQ(reason, Reason::kResources);
}

// Job 3 would fit on the node that is left. Only job 2 is in its way, which is ahead of it in the
// same partition and did not start.
TEST_F(Reasons, Priority) {
  EXPECT_EQ(told({job(1, 3), job(2, 2), job(3, 1)}, 3),
            "jobs ahead of it wait for nodes of its partition");
  EXPECT_EQ(reason, Reason::kPriority);
}

// A job fails its first partition and starts in its second one: no job is ahead in the
// first any longer.
TEST_F(Reasons, NobodyIsBehindAJobThatStartedInAnotherPartition) {
  c.partitions = {partition("p", {four[0], four[1]}, OverSubscribe::kNo),
                  partition("q", {four[2], four[3]}, OverSubscribe::kNo)};
  Driver driver{c, four};
  driver.step(at(1), Submit{job(1, 1, "p")});
  driver.run_until(at(1));
  JobRequest both = job(2, 2, "p");
  both.partitions = {"p", "q"};
  driver.step(at(2), Submit{both});
  driver.step(at(2), Submit{job(3, 1, "p")});
  driver.run_until(at(2));
  EXPECT_EQ(driver.nodes_of(2), (std::vector<std::string>{"n3", "n4"}));
  EXPECT_EQ(driver.nodes_of(3), (std::vector<std::string>{"n2"}));
}

// Job 3 comes first and blocks the partition, so that job 2 is passed over. That says less than the
// reason it has, so it keeps that (R2.6).
TEST_F(Reasons, PriorityKeepsASpecificReason) {
  JobRequest needs_down = job(2, 1);
  needs_down.required_nodes = {"n4"};
  Driver driver{c, four, make_replay()};
  NodeSpec down = four[3];
  down.state = NodeState::kDown;
  driver.step(at(0), NodeUpdate{down});
  driver.step(at(0), Submit{needs_down});
  driver.step(at(1), Pass{});
  EXPECT_EQ(driver.view(2).reason, Reason::kReqNodeNotAvail);
  JobRequest first = job(3, 4);
  first.priority = Priority{0xffffff00U};
  driver.step(at(2), Submit{first});
  driver.step(at(2), Pass{});
  EXPECT_EQ(driver.view(2).reason, Reason::kReqNodeNotAvail);
}

// Memory is a consumable resource, and jobs 1 and 2 ask for none, so they are given all of their
// nodes' (R5.3). Two jobs could share each node otherwise.
TEST_F(Reasons, ResourcesWhereAJobThatAskedForNoMemoryHasItAll) {
  c = gang_linear({partition("p", {four[0], four[1], four[2]}, OverSubscribe::kForce, 2)});
  c.cluster.memory = true;
  JobRequest frugal = job(3, 1);
  frugal.memory = MemoryPerNode{MemoryMiB{10}};
  EXPECT_EQ(told({job(1, 2), job(2, 1), frugal}, 3),
            "needs 1 node; of 3 that could hold it 0 are idle; 3 have no memory left: job 1 asked "
            "for none and so was given all of n1's");
  EXPECT_EQ(reason, Reason::kResources);
  // With a default it is given that, and no sentence says that it asked for none.
  c.cluster.default_memory.per_node = MemoryMiB{7995};  // of 8000
  EXPECT_EQ(told({job(1, 3), frugal}, 3), "needs 1 node; of 3 that could hold it 0 are idle");
}

// The largest number that is free on a node, or how many nodes have enough.
TEST_F(Reasons, DevicesThatAreNotFree) {
  for (NodeSpec& node : four) node.devices = {{{"gpu", "nvidia-a100-sxm4-80gb"}, 4}};
  c = gang_linear({partition("p", {four[0], four[1]}, OverSubscribe::kForce, 2)});
  const auto asks = [](std::int64_t id, int nodes, const char* type, int count) {
    JobRequest request = job(id, nodes);
    request.devices = {{{"gpu", type}, count}};
    return request;
  };
  EXPECT_EQ(told({asks(1, 2, "", 2), asks(2, 1, "a100", 4)}, 2),
            "needs 1 node; of 2 that could hold it 0 are idle; needs 4 GPUs of type a100 on one "
            "node; the largest has 2 free");
  EXPECT_EQ(told({asks(1, 2, "", 4), asks(2, 2, "", 1)}, 2),
            "needs 2 nodes; of 2 that could hold it 0 are idle; needs 1 GPU on each node; the "
            "largest has 0 free");
  EXPECT_EQ(told({asks(1, 1, "", 1), asks(2, 2, "a100", 4)}, 2),
            "needs 2 nodes; of 2 that could hold it 1 are idle; 1 has 4 GPUs of type a100 free");
  EXPECT_EQ(told({asks(1, 1, "a100", 5)}, 1),
            "partition p can never hold it: it needs 1 node, and 0 of 2 have 5 GPUs of type a100, "
            "which it asks for on each");
}

// A number over all nodes: what all of them have free together.
TEST_F(Reasons, DevicesOfTheWholeJobThatAreNotFree) {
  for (NodeSpec& node : four) node.devices = {{{"gpu", "a"}, 4}};
  c = gang_linear({partition("p", {four[0], four[1]}, OverSubscribe::kForce, 2)});
  c.cluster.select = SelectType::kConsTres;
  c.cluster.unit = SelectUnit::kCore;
  JobRequest first = job(1, 2), second = job(2, 1);
  first.tasks = second.tasks = 2;
  first.devices = {{{"gpu", ""}, 3}};
  second.max_nodes.reset();
  second.devices_of_job = {{{"gpu", "a"}, 6}};
  EXPECT_EQ(told({first, second}, 2),
            "needs 1 node; of 2 that could hold it 0 are idle; needs 6 GPUs of type a in all; 2 "
            "are free");
}

// A job that takes only idle nodes would not come to these, whatever memory is left.
TEST_F(Reasons, MemoryIsNotNamedWhereJobsDoNotShare) {
  c.cluster.memory = true;
  EXPECT_EQ(told({job(1, 4), job(2, 1)}, 2), "needs 1 node; of 4 that could hold it 0 are idle");
}

// Three other nodes are idle and do not help a job that names its node.
TEST_F(Reasons, RequiredNodeDown) {
  four[0].state = NodeState::kDrain;
  JobRequest request = job(1, 1);
  request.required_nodes = {"n1"};
  EXPECT_EQ(told({request}, 1), "a required node is down, drained or kept for other jobs");
  EXPECT_EQ(reason, Reason::kReqNodeNotAvail);
}

// Two nodes are left for a job of three. It is not a matter of constraints: all four have the
// hardware, and may come back.
TEST_F(Reasons, NodesDown) {
  four[0].state = four[1].state = NodeState::kDown;
  told({job(1, 3)}, 1);
  EXPECT_EQ(reason, Reason::kResources);
}

// No node has the label, in whatever state it is, so no end of a job can help.
TEST_F(Reasons, BadConstraints) {
  JobRequest request = job(1, 1);
  request.constraint = "gpu";
  EXPECT_EQ(told({request}, 1),
            "partition p can never hold it: it needs 1 node, and 0 of 4 have the features that it "
            "asks for");
  EXPECT_EQ(reason, Reason::kBadConstraints);
}

// The user sees which wish is too much.
TEST_F(Reasons, BadConstraintsNameWhatNodesLack) {
  const std::string never = "partition p can never hold it: it needs 2 nodes, and ";
  JobRequest many = job(1, 2);
  many.cpus_per_task = 5;  // of 4
  EXPECT_EQ(told({many}, 1), never + "0 of 4 have the CPUs that it asks for");
  JobRequest large = job(1, 2);
  large.tmp_disk = MemoryMiB{1'000'000'000};
  EXPECT_EQ(told({large}, 1), never + "0 of 4 have the memory and the disk that it asks for");
  JobRequest picky = job(1, 2);
  picky.excluded_nodes = {four[0].name, four[1].name};
  picky.unusable_nodes =
      std::make_shared<const std::vector<std::string>>(std::vector<std::string>{four[2].name});
  EXPECT_EQ(told({picky}, 1), never + "1 of 4 are not excluded");
  JobRequest named = job(1, 2);
  named.required_nodes = {"gone"};
  EXPECT_EQ(told({named}, 1), never + "not all nodes that it names exist");
}

// The time is reported in UTC, once more when it changes, and not whenever the job is looked
// at.
TEST_F(Reasons, BeginTime) {
  JobRequest request = job(1, 1);
  request.begin_time = at(61);
  EXPECT_EQ(told({request}, 1), "may start at 1970-01-01T00:01:01Z at the earliest");
  EXPECT_EQ(reason, Reason::kBeginTime);
  // A fact that stays: later, and in another configuration, it is not reported again.
  Driver driver{c, four, make_replay()};
  driver.step(at(1), Submit{request});
  EXPECT_EQ(last_word(driver, 1), "may start at 1970-01-01T00:01:01Z at the earliest");
  c.partitions[0].priority_tier = 2;
  driver.step(at(20), Configure{std::make_shared<const Configuration>(c)});
  EXPECT_EQ(last_word(driver, 1), "nothing");
  request.begin_time = at(90);
  driver.step(at(30), Update{request});
  EXPECT_EQ(last_word(driver, 1), "may start at 1970-01-01T00:01:30Z at the earliest");
}

// Job 1 was submitted with --hold; job 2 is held by an administrator.
TEST_F(Reasons, Held) {
  JobRequest request = job(1, 1);
  request.hold = true;
  EXPECT_EQ(told({request}, 1), "held by its user until it is released");
  EXPECT_EQ(reason, Reason::kJobHeldUser);
  Driver driver{c, four, make_replay()};
  driver.step(at(0), Submit{job(2, 1)});
  driver.step(at(0), Hold{JobId{2}, true});
  EXPECT_EQ(last_word(driver, 2), "held by an administrator until it is released");
  EXPECT_EQ(reason, Reason::kJobHeldAdmin);
}

// MaxBatchRequeue=1: after the first loss of a node it starts again, the second one holds it.
// Actions of its user or a preemptor do not count.
TEST_F(Reasons, HeldAfterTooManyNodeFailures) {
  c.cluster.queue.max_batch_requeue = 1;
  Driver driver{c, four, make_replay()};
  driver.step(at(0), Submit{job(1, 1)});
  for (int i = 1; i <= 5; ++i) {
    driver.step(at(i), Pass{});
    driver.step(at(i), Requeue{JobId{1}});
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 1; i <= 2; ++i) {
      driver.step(at(10 * round + 10 + i), Pass{});
      ASSERT_NE(driver.view(1).allocation, nullptr);
      driver.step(at(10 * round + 10 + i), JobEnding{JobId{1}, JobState::kNodeFail, 1});
      driver.step(at(10 * round + 10 + i), JobGone{.job = JobId{1}});
    }
    EXPECT_EQ(last_word(driver, 1),
              "its nodes failed more than the 1 times that are allowed; held until it is released");
    EXPECT_EQ(reason, Reason::kJobHoldMaxRequeue);
    // They are counted again after the release.
    driver.step(at(10 * round + 15), Release{JobId{1}});
  }
}

// EnforcePartLimits is NO, so a job beyond a limit is queued and waits until the limit is raised.
TEST_F(Reasons, PartitionLimits) {
  c.partitions[0].max_time = seconds(3600);
  c.partitions[0].max_nodes = 2;
  c.partitions[0].max_memory.per_node = MemoryMiB{1000};
  JobRequest request = job(1, 1);
  request.time_limit = seconds(7200);
  EXPECT_EQ(told({request}, 1), "asks for 120 minutes; partition p allows 60 minutes");
  EXPECT_EQ(reason, Reason::kPartitionTimeLimit);
  EXPECT_EQ(told({job(1, 3)}, 1), "asks for 3 nodes; partition p allows 1 to 2");
  EXPECT_EQ(reason, Reason::kPartitionNodeLimit);
  request = job(1, 1);
  request.memory = MemoryPerNode{MemoryMiB{1001}};
  EXPECT_EQ(told({request}, 1), "asks for 1001 MiB per node; partition p allows 1000");
  EXPECT_EQ(reason, Reason::kMaxMemPerLimit);
}

// More CPUs than a partition has, drained nodes included: the job waits and blocks no other job,
// also while too few nodes are left for it.
TEST_F(Reasons, PartitionCpus) {
  std::vector<NodeSpec> one_drained = four;
  one_drained[3].state = NodeState::kDrain;
  Driver driver{c, one_drained, make_replay()};
  JobRequest wide = job(1, 4);
  wide.tasks = 17;
  driver.step(at(1), Submit{wide});
  driver.step(at(1), Submit{job(2, 1)});
  driver.step(at(2), Pass{});
  EXPECT_EQ(last_word(driver, 1), "asks for 17 CPUs; partition p has 16");
  EXPECT_EQ(reason, Reason::kPartitionConfig);
  EXPECT_EQ(driver.view(2).state, JobState::kRunning);
}

// 1.8 item 5: the limit per node against a request per CPU.
TEST_F(Reasons, MaxMemPerNodeOfARequestPerCpu) {
  c.partitions[0].max_memory.per_node = MemoryMiB{1000};
  JobRequest request = job(1, 1);
  request.memory = MemoryPerCpu{MemoryMiB{600}};
  request.cpus_per_task = 2;
  EXPECT_EQ(told({request}, 1), "asks for 1200 MiB per node; partition p allows 1000");
  EXPECT_EQ(reason, Reason::kMaxMemPerLimit);
  request.cpus_per_task = 1;
  // 600 MiB × 2 CPUs of one task, and × 2 tasks of one CPU each, are the same 1200 MiB. On two
  // nodes each has 600.
  request.tasks = 2;  // both on its one node
  EXPECT_EQ(told({request}, 1), "asks for 1200 MiB per node; partition p allows 1000");
  request.min_nodes = 2;
  request.max_nodes = 2;
  told({request}, 1);
  EXPECT_EQ(reason, Reason::kNone);
}

// 4.1: more nodes than the QOS allows are a matter of accounting, not of the partition.
TEST_F(Reasons, QosNodeLimit) {
  QosConfig small;
  small.name = "small";
  small.limits.job_tres[Tres::kNode] = 2;
  c.qos = {small};
  JobRequest request = job(1, 3);
  request.qos = "small";
  EXPECT_EQ(told({request}, 1), "asks for 3 nodes; QOS small allows 2");
  EXPECT_EQ(reason, Reason::kQosMaxNodePerJobLimit);
  request.min_nodes = 1;  // -N1-3 gets what it may
  told({request}, 1);
  EXPECT_EQ(reason, Reason::kNone);
}

// A job with several records says once what came of all of them, and nothing if that has not
// changed.
TEST_F(Reasons, OneWordPerPassOfAJobInTwoPartitions) {
  c.partitions = {partition("p", {four[0], four[1]}, OverSubscribe::kNo),
                  partition("q", {four[2], four[3]}, OverSubscribe::kNo)};
  Driver driver{c, four, make_replay()};
  driver.step(at(1), Submit{job(1, 1, "p")});
  driver.step(at(1), Submit{job(2, 2, "q")});
  driver.step(at(1), Pass{});
  JobRequest both = job(3, 2, "p");
  both.partitions = {"p", "q"};
  driver.step(at(2), Submit{both});
  driver.take_log();
  driver.step(at(3), Pass{});
  // Both partitions are tried in this pass, and one sentence comes of it.
  EXPECT_EQ(driver.take_log().size(), 1U);
  driver.step(at(4), Submit{job(4, 1, "q")});  // another pass is worth making
  driver.take_log();
  driver.step(at(5), Pass{});
  for (const Decision& decision : driver.take_log()) {
    const auto* waits = std::get_if<Waits>(&decision);
    EXPECT_TRUE(waits == nullptr || waits->job != JobId{3}) << waits->message;
  }
  driver.step(at(6), JobGone{JobId{2}});
  driver.take_log();
  driver.step(at(7), Pass{});
  const std::vector<Decision> log = driver.take_log();
  EXPECT_EQ(driver.nodes_of(3), (std::vector<std::string>{"n3", "n4"}));
  EXPECT_FALSE(std::ranges::any_of(log, [](const Decision& decision) {
    const auto* waits = std::get_if<Waits>(&decision);
    return waits != nullptr && waits->job == JobId{3};
  })) << "it starts, and said that it waits";
}

// DOWN and INACTIVE start nothing, and the job stays in the queue through both.
TEST_F(Reasons, PartitionStates) {
  c.partitions[0].state = PartitionState::kDown;
  EXPECT_EQ(told({job(1, 1)}, 1), "partition p is down");
  EXPECT_EQ(reason, Reason::kPartitionDown);
  Driver driver{c, four, make_replay()};
  driver.step(at(1), Submit{job(1, 1)});
  c.partitions[0].state = PartitionState::kInactive;
  driver.step(at(2), Configure{std::make_shared<const Configuration>(c)});
  EXPECT_EQ(last_word(driver, 1), "partition p is inactive");
  EXPECT_EQ(reason, Reason::kPartitionInactive);
  c.partitions[0].state = PartitionState::kDrain;  // 1.2.1: starts what is queued
  driver.step(at(3), Configure{std::make_shared<const Configuration>(c)});
  driver.step(at(3), Pass{});
  EXPECT_EQ(driver.view(1).state, JobState::kRunning);
}

// One cause after the other: a user who is denied, an unknown partition, an unknown QOS, a QOS that
// the partition denies, a limit of the QOS. All of these jobs are queued, since the configuration
// may change.
TEST_F(Reasons, Access) {
  c.partitions[0].deny_users = {{"eve"}};
  JobRequest request = job(1, 1);
  request.user = "eve";
  EXPECT_EQ(told({request}, 1), "partition p is not open to eve");
  EXPECT_EQ(reason, Reason::kPartitionConfig);
  EXPECT_EQ(told({job(1, 1, "nowhere")}, 1), "no partition that it names exists");
  EXPECT_EQ(reason, Reason::kPartitionInactive);
  request = job(1, 1);
  request.qos = "gold";
  EXPECT_EQ(told({request}, 1), "there is no QOS gold");
  EXPECT_EQ(reason, Reason::kInvalidQos);
  QosConfig gold;
  gold.name = "gold";
  gold.limits.user_jobs = 1;
  c.qos = {gold};
  c.partitions[0].deny_qos = {{"gold"}};
  EXPECT_EQ(told({request}, 1), "partition p is not open to QOS gold");
  EXPECT_EQ(reason, Reason::kQosNotAllowed);
  c.partitions[0].deny_qos.reset();
  JobRequest second = request;
  second.id = JobId{2};
  EXPECT_EQ(told({request, second}, 2),
            "QOS gold allows 1 jobs per user; with this job it would be 2");
  EXPECT_EQ(reason, Reason::kQosMaxJobsPerUserLimit);
}

// The job needs 100 s and has 50 s left: it can never start, so it ends instead of waiting.
TEST_F(Reasons, Deadline) {
  JobRequest request = job(1, 1);
  request.time_limit = seconds(100);
  request.deadline = at(50);
  Driver driver{c, four, make_replay()};
  driver.step(at(0), Submit{request});
  driver.step(at(1), Pass{});
  EXPECT_EQ(driver.view(1).state, JobState::kDeadline);
  EXPECT_EQ(driver.view(1).reason, Reason::kDeadline);
}

// The victim does not end at once here, so the pass ends with the preemption told and no node free.
TEST_F(Reasons, WaitsForItsVictims) {
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  c.partitions.push_back(partition("high", four, OverSubscribe::kNo, 1, 2));
  Driver driver{c, four, make_replay()};
  driver.ends_at_once = false;
  driver.step(at(0), Submit{job(1, 4, "p")});
  driver.step(at(0), Pass{});
  driver.step(at(1), Submit{job(2, 2, "high")});
  driver.step(at(1), Pass{});
  EXPECT_EQ(last_word(driver, 2), "waits for the end of the 1 jobs that it preempts");
  EXPECT_EQ(reason, Reason::kResources);
}

}  // namespace
}  // namespace sched::testing
