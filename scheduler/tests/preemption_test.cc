// Tests of which victims are taken, and when they may be (3.6, 4.5, 7).
#include "scheduler/testing/rule_test.h"

#include <memory>
#include <vector>

namespace sched::testing {
namespace {

using Preemption = RuleTest;

// 3.6 step 4g: "never preempt just to use cheap nodes": n1 is lighter, but the victims are taken in
// the order of their standing, and low is below mid.
TEST_F(Preemption, R3_6_4g_VictimsAreNotChosenForTheWeightOfTheirNodes) {
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

// P14: when the preemptor has started, the same pass gives others what it left on its nodes.
TEST_F(Preemption, P14_AClaimEndsWhenThePreemptorStarts) {
  const auto two = nodes("n", 1, 2);
  c_.cluster.select = SelectType::kConsTres;
  preempt_by_tier(PreemptMode::kCancel, two);
  begin(two);
  tell(0, Submit{with_tasks(job(1, 1, "low"), 4)});
  tell(0, Submit{with_tasks(job(2, 1, "low"), 4)});
  driver_->take_log();
  tell(1, Submit{with_tasks(job(3, 1, "high"), 2)});
  driver_->step(at(2), Submit{with_tasks(job(4, 1, "high"), 2)});
  // Jobs 3 and 4 want two cores each of a node of four: one victim makes room for both. Job 4 does
  // not know of it yet, and must not take the other one.
  const std::vector<End> victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  tell(3, JobGone{victims[0].job});
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(state(4), JobState::kRunning);
  EXPECT_TRUE(ends().empty());
}

// 4.5.2 test 2: a tier's shadow falls on jobs whatever PreemptType there is; until their time is
// over it must not. The waiting job is tried again at that instant.
TEST_F(Preemption, R4_5_2_ExemptJobsAreNotSuspendedByATierUnderPreemptQosEither) {
  const auto one = nodes("n", 1, 1);
  for (const PreemptType type : {PreemptType::kPartitionPriority, PreemptType::kQos}) {
    Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
    c.cluster.preempt_type = type;
    c.cluster.preempt_exempt_time = seconds(60);
    Driver driver{c, one};
    submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit(driver, 10, with_tasks(job(2, 1, "high"), 4));
    driver.run_until(at(59));
    EXPECT_EQ(driver.state(1), "R(59)");
    EXPECT_EQ(driver.state(2), "PD");
    driver.run_until(at(61));
    EXPECT_EQ(driver.state(1), "S(60)");
    EXPECT_EQ(driver.state(2), "R(1)");
  }
}

// P17 where CPUs are counted: a job that would fit beside the shadows merely waits for its turn.
TEST_F(Preemption, P17_CountedCpusKillOnlyWhereTheShadowsLeaveTooFew) {
  const auto one = nodes("n", 1, 1, 8);
  Configuration c = two_tiers(one, PreemptMode::kCancel, 2);
  c.cluster.unit = SelectUnit::kCpu;
  c.cluster.task_affinity = false;
  Driver driver{c, one, make_replay()};
  driver.ends_at_once = false;
  submit_and_pass(driver, 0, with_tasks(job(1, 1, "low"), 4));
  submit_and_pass(driver, 1, with_tasks(job(2, 1, "low"), 4));
  // 2 CPUs are the shadow's; beside them 4 of 8 fit, but not 8. Job 1 goes on, job 2 waits for its
  // turn.
  submit_and_pass(driver, 2, with_tasks(job(3, 1, "high"), 2));
  EXPECT_TRUE(ends(driver).empty());
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
  EXPECT_EQ(state(driver, 2), JobState::kSuspended);
  EXPECT_EQ(driver.view(2).reason, Reason::kTimeslice);
  submit_and_pass(driver, 3, with_tasks(job(4, 1, "high"), 4));
  const std::vector<End> killed = ends(driver);  // 2 + 4 CPUs of 8: none is left for 4 more
  ASSERT_EQ(killed.size(), 1U) << "job 2 is stopped already (R7.42)";
  EXPECT_EQ(killed[0].job, JobId{1});
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// 7.3 item 5: the exempt time is that of the configuration in force.
TEST_F(Preemption, R7_3_ExemptTimeFollowsTheConfiguration) {
  const auto one = nodes("n", 1, 1);
  // Job 1 is safe by the configuration in which it started and not by the later one, or the other
  // way round.
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
    // At 30 job 1 has run for 30 s: more than the second of `open`, less than the ten minutes of
    // `safe`.
    EXPECT_EQ(state(2), was_safe ? JobState::kRunning : JobState::kPending);
  }
}

// T10: a user's suspend is priority 0, also as the priority of a victim (7.3 item 3).
TEST_F(Preemption, T10_ASuspendedVictimHasPriorityZero) {
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
  // Job 1, of priority 5000, is above the 1000 from which jobs are exempt.
  EXPECT_TRUE(ends().empty());
  tell(2, UserSuspend{JobId{1}});
  const std::vector<End> victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].job, JobId{1});
}

// 7.8 step 2: "end_time := min(end_time, now + grace)".
TEST_F(Preemption, R7_8_GraceEndsWithTheJobsOwnTime) {
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
  // The victim's own limit ends at 600, before the grace time at 3,700.
  EXPECT_EQ(victims[0].kill_at, at(600) + c_.cluster.kill_wait);
}

}  // namespace
}  // namespace sched::testing
