// Rules that no recording shows, one test each, named after the rule.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class Rules : public ::testing::Test {
 protected:
  Rules() {
    c_ = gang_linear({});
    c_.cluster.gang = false;
  }
  void add(const std::string& name, const std::vector<NodeSpec>& nodes, std::uint16_t tier = 1) {
    c_.partitions.push_back(testing::partition(name, nodes, OverSubscribe::kNo, 1, tier));
    c_.partitions.back().is_default = c_.partitions.size() == 1;
  }
  // Partitions low, mid and high of tiers 1, 2 and 3, whose jobs end those of lower tiers.
  void preempt_by_tier(PreemptMode mode, const std::vector<NodeSpec>& nodes) {
    c_.cluster.preempt_type = PreemptType::kPartitionPriority;
    c_.cluster.preempt_mode = mode;
    std::uint16_t tier = 1;
    for (const char* name : {"low", "mid", "high"}) {
      add(name, nodes, tier++);
    }
  }
  Driver& begin(std::vector<NodeSpec> nodes) {
    driver_ = std::make_unique<Driver>(c_, std::move(nodes), Options{.told_timing = true});
    driver_->ends_at_once = false;
    return *driver_;
  }
  void tell(double t, Event event) {
    driver_->step(at(t), std::move(event));
    driver_->step(at(t), Pass{});
  }
  JobState state(std::int64_t id) const { return driver_->view(id).state; }
  std::vector<End> ends() {
    std::vector<End> found;
    for (const Decision& decision : driver_->take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
    }
    return found;
  }
  static JobRequest on(JobRequest request, std::vector<std::string> names) {
    request.required_nodes = std::move(names);
    return request;
  }

  Configuration c_;
  std::unique_ptr<Driver> driver_;
};

// 1.2.1: DRAIN and INACTIVE take no new jobs; DRAIN starts what is queued.
TEST_F(Rules, R1_2_1_PartitionsThatDrainTakeNoNewJobs) {
  const auto one = nodes("n", 1, 1);
  add("p", one);
  add("q", one);
  begin(one);
  tell(0, Submit{job(1, 1, "p")});
  tell(1, Submit{job(2, 1, "p")});
  for (const PartitionState closed : {PartitionState::kInactive, PartitionState::kDrain}) {
    c_.partitions[0].state = closed;
    tell(2, Configure{std::make_shared<const Configuration>(c_)});
    driver_->take_log();
    tell(2, Submit{job(3, 1, "p")});
    const std::vector<Decision> log = driver_->take_log();
    EXPECT_TRUE(std::ranges::any_of(
        log, [](const Decision& decision) { return std::holds_alternative<Refused>(decision); }));
    EXPECT_FALSE(driver_->scheduler().job(JobId{3}, at(2)).has_value());
  }
  JobRequest both = job(4, 1, "p");
  both.partitions = {"p", "q"};
  tell(4, Submit{both});
  EXPECT_EQ(state(4), JobState::kPending);  // q takes it
  tell(6, JobGone{.job = JobId{1}, .verdict = JobState::kCompleted});
  EXPECT_EQ(state(2), JobState::kRunning);
}

// 3.6 step 4g: "never preempt just to use cheap nodes".
TEST_F(Rules, R3_6_4g_VictimsAreNotChosenForTheWeightOfTheirNodes) {
  auto two = nodes("n", 1, 2);
  two[1].weight = 10;
  preempt_by_tier(PreemptMode::kCancel, two);
  begin(two);
  tell(0, Submit{on(job(1, 1, "mid"), {"n1"})});
  tell(1, Submit{on(job(2, 1, "low"), {"n2"})});
  driver_->take_log();
  tell(2, Submit{job(3, 1, "high")});
  const std::vector<End> victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].job, JobId{2});
}

// 3.5 step 3: it can never run, and keeps nobody from the nodes that it names.
TEST_F(Rules, R3_5_3_ARequiredNodeThatDoesNotExistIsNeverBusy) {
  const auto two = nodes("n", 1, 2);
  add("p", two);
  begin(two);
  tell(0, Submit{on(job(1, 2), {"n1", "gone"})});
  EXPECT_EQ(driver_->view(1).reason, Reason::kBadConstraints);
  tell(1, Submit{on(job(2, 1), {"n1"})});
  EXPECT_EQ(state(2), JobState::kRunning);
}

// 4.2.2: what one job asks of the nodes' disk is no matter of the next one.
TEST_F(Rules, R4_2_2_TmpDiskFiltersTheNodesOfItsOwnJobOnly) {
  auto one = nodes("n", 1, 1);
  one[0].tmp_disk = MemoryMiB{100};
  add("p", one);
  begin(one);
  JobRequest large = job(1, 1);
  large.tmp_disk = MemoryMiB{1000};
  tell(0, Submit{large});
  EXPECT_EQ(driver_->view(1).reason, Reason::kBadConstraints);
  tell(1, Submit{job(2, 1)});
  EXPECT_EQ(state(2), JobState::kRunning);
  large.id = JobId{3};
  tell(2, Submit{large});
  EXPECT_EQ(driver_->view(3).reason, Reason::kBadConstraints);
}

// 4.4.4 step 5: "with required nodes all of them must lie in that run"; of such the first, for a
// job that takes idle nodes (recorded).
TEST_F(Rules, R4_4_4_ContiguousNodesAreThoseAroundTheRequiredOnes) {
  const auto ten = nodes("n", 1, 10);
  add("p", ten);
  begin(ten);
  tell(0, Submit{on(job(1, 1), {"n7"})});
  JobRequest block = on(job(2, 3), {"n2"});
  block.contiguous = true;
  tell(1, Submit{block});
  EXPECT_EQ(driver_->nodes_of(2), (std::vector<std::string>{"n1", "n2", "n3"}));
}

// 7.3 item 5: the exempt time is that of the configuration in force.
TEST_F(Rules, R7_3_ExemptTimeFollowsTheConfiguration) {
  const auto one = nodes("n", 1, 1);
  for (const bool was_safe : {true, false}) {
    c_ = gang_linear({partition("low", one, OverSubscribe::kForce, 1, 1),
                      partition("high", one, OverSubscribe::kForce, 1, 2)});
    c_.cluster.select = SelectType::kConsTres;
    c_.cluster.unit = SelectUnit::kCore;
    c_.cluster.preempt_type = PreemptType::kPartitionPriority;
    c_.cluster.preempt_mode = PreemptMode::kSuspend;
    QosConfig safe;
    safe.name = "safe";
    safe.preempt_exempt_time = std::chrono::minutes{10};
    QosConfig open;
    open.name = "open";
    open.preempt_exempt_time = std::chrono::seconds{1};
    c_.qos = {safe, open};
    c_.partitions[0].qos = was_safe ? "safe" : "open";
    begin(one);
    JobRequest low = job(1, 1, "low");
    low.tasks = 4;
    tell(0, Submit{low});
    c_.partitions[0].qos = was_safe ? "open" : "safe";
    tell(20, Configure{std::make_shared<const Configuration>(c_)});
    JobRequest high = job(2, 1, "high");
    high.tasks = 4;
    tell(30, Submit{high});
    EXPECT_EQ(state(2), was_safe ? JobState::kRunning : JobState::kPending);
  }
}

// T10: a user's suspend is priority 0, also as the priority of a victim (7.3 item 3).
TEST_F(Rules, T10_ASuspendedVictimHasPriorityZero) {
  auto one = nodes("n", 1, 1);
  one[0].memory = MemoryMiB{1000};
  preempt_by_tier(PreemptMode::kCancel, one);
  c_.cluster.select = SelectType::kConsTres;
  c_.cluster.unit = SelectUnit::kCore;
  c_.cluster.memory = true;  // which a suspended job keeps
  c_.cluster.preempt.min_exempt_priority = Priority{1000};
  begin(one);
  JobRequest low = job(1, 1, "low");
  low.priority = Priority{5000};
  low.memory = MemoryPerNode{MemoryMiB{1000}};
  tell(0, Submit{low});
  JobRequest high = job(2, 1, "high");
  high.memory = low.memory;
  tell(1, Submit{high});
  EXPECT_TRUE(ends().empty());
  tell(2, UserSuspend{JobId{1}});
  const std::vector<End> victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].job, JobId{1});
}

// T10 and T7: a requeue gives no priority back.
TEST_F(Rules, T10_ASuspendedJobIsHeldAfterItsRequeue) {
  const auto one = nodes("n", 1, 1);
  add("p", one);
  c_.cluster.queue.requeue_delay = base::Duration{0};
  begin(one);
  tell(0, Submit{job(1, 1)});
  tell(1, UserSuspend{JobId{1}});
  tell(2, Requeue{JobId{1}});
  tell(3, JobGone{.job = JobId{1}, .verdict = JobState::kCancelled});
  tell(200, Wake{});
  EXPECT_EQ(state(1), JobState::kPending);
  EXPECT_EQ(driver_->view(1).reason, Reason::kJobHeldUser);
  tell(201, UserResume{JobId{1}});
  EXPECT_EQ(state(1), JobState::kRunning);
}

// T5: a cancel counts also while the job ends for a requeue.
TEST_F(Rules, T5_ACancelDuringARequeueStands) {
  const auto one = nodes("n", 1, 1);
  preempt_by_tier(PreemptMode::kRequeue, one);
  c_.partitions[0].grace_time = std::chrono::minutes{1};
  begin(one);
  tell(0, Submit{job(1, 1, "low")});
  tell(10, Submit{job(2, 1, "high")});
  EXPECT_EQ(ends().size(), 1U);
  tell(20, Cancel{JobId{1}});
  tell(30, JobGone{.job = JobId{1}, .verdict = JobState::kCancelled});
  EXPECT_EQ(state(1), JobState::kCancelled);
  EXPECT_EQ(state(2), JobState::kRunning);
}

// 13.5 and 7.7 step 2d: in no partition it would wait for ever.
TEST_F(Rules, R13_5_NoRequeueWithoutAPartition) {
  const auto one = nodes("n", 1, 1);
  preempt_by_tier(PreemptMode::kRequeue, one);
  begin(one);
  tell(0, Submit{job(1, 1, "mid")});
  std::erase_if(c_.partitions, [](const PartitionConfig& each) { return each.name == "mid"; });
  tell(1, Configure{std::make_shared<const Configuration>(c_)});
  tell(2, Requeue{JobId{1}});
  EXPECT_TRUE(ends().empty());
  EXPECT_EQ(state(1), JobState::kRunning);
}

// 7.8 step 2: "end_time := min(end_time, now + grace)".
TEST_F(Rules, R7_8_GraceEndsWithTheJobsOwnTime) {
  const auto one = nodes("n", 1, 1);
  preempt_by_tier(PreemptMode::kCancel, one);
  c_.partitions[0].grace_time = std::chrono::hours{1};
  begin(one);
  JobRequest low = job(1, 1, "low");
  low.time_limit = std::chrono::minutes{10};
  tell(0, Submit{low});
  tell(100, Submit{job(2, 1, "high")});
  const std::vector<End> victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].kill_at, at(600) + c_.cluster.kill_wait);
}

// 3.4 step 9: a job of several partitions is not held for what one of them can never do.
TEST_F(Rules, R3_4_9_NeverInOnePartitionIsNotNever) {
  const auto two = nodes("n", 1, 2);
  add("small", {two[0]});
  add("large", two);
  c_.partitions[1].state = PartitionState::kDown;
  begin(two);
  JobRequest request = job(1, 2);
  request.partitions = {"small", "large"};
  tell(0, Submit{request});
  c_.partitions[1].state = PartitionState::kUp;
  EXPECT_NE(driver_->view(1).reason, Reason::kNone);
  EXPECT_NE(driver_->view(1).priority, Priority{0});
  tell(1, Configure{std::make_shared<const Configuration>(c_)});
  EXPECT_EQ(state(1), JobState::kRunning);
}

}  // namespace
}  // namespace sched::testing
