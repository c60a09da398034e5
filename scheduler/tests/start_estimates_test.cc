// When jobs are expected to start with sched/builtin (8.3); the recordings est_builtin_* show more.
#include "scheduler/testing/rule_test.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace sched::testing {
namespace {

// The main pass and the pass that estimates come one by one, so that a test sees which of the two
// decided something.
class StartEstimateRules : public RuleTest {
 protected:
  StartEstimateRules() { c_.cluster.scheduler = SchedulerType::kBuiltin; }

  void pass(double t) { driver_->step(at(t), Pass{}); }
  void estimate(double t) { driver_->step(at(t), Pass{.main = false, .backfill = true}); }
  // In seconds; -1 = no start is expected.
  std::int64_t expected(std::int64_t id) const {
    const auto start = driver_->view(id).expected_start;
    return start ? (*start - at(0)) / std::chrono::seconds{1} : -1;
  }
};

// 1 has two of four nodes until 120. 2 needs all of them then, and 3 two of them when 2 has ended.
TEST_F(StartEstimateRules, R8_3_JobsAreExpectedOneAfterTheOther) {
  begin_with(4);
  submit(0, limited(1, 2, 2));
  pass(0);
  submit(1, limited(2, 4, 3));
  submit(1, limited(3, 2, 1));
  pass(2);
  EXPECT_EQ(expected(2), -1) << "the main pass estimates nothing";
  estimate(3);
  EXPECT_EQ(expected(2), 120);
  EXPECT_EQ(expected(3), 120 + 180);
  EXPECT_EQ(driver_->view(2).planned_nodes.size(), 4U);
  EXPECT_EQ(state(3), JobState::kPending) << "nothing starts";
}

// 3 could run beside 2 on the nodes that it leaves, but does not overtake it. 4 is in a partition
// of its own, whose nodes are free.
TEST_F(StartEstimateRules, R8_3_NoJobIsExpectedBeforeOneAheadInItsPartition) {
  const auto all = nodes("n", 1, 4);
  add("p", {all[0], all[1], all[2]});
  add("q", {all[3]});
  begin(all);
  submit(0, limited(1, 2, 2, "p"));
  pass(0);
  submit(1, limited(2, 2, 3, "p"));
  submit(1, limited(3, 1, 1, "p"));
  submit(1, limited(4, 1, 1, "q"));
  estimate(3);
  EXPECT_EQ(expected(2), 120);
  EXPECT_GE(expected(3), 120);
  EXPECT_EQ(expected(4), 3);
}

// As recorded: a job whose nodes another gets is put off to the end of the job before it in the
// queue, here 3 on n2, though n1 is taken for longer.
TEST_F(StartEstimateRules, R8_3_AsRecordedTheJobBeforeSaysHowLong) {
  for (const bool as_recorded : {false, true}) {
    c_ = gang_linear({});
    c_.cluster.gang = false;
    c_.cluster.scheduler = SchedulerType::kBuiltin;
    c_.cluster.quirks = only(&Quirks::estimates_follow_the_last, as_recorded);
    begin_with(2);
    submit(0, limited(1, 2, 1));
    pass(0);
    submit(1, on(limited(2, 1, 10), {"n1"}));
    submit(1, on(limited(3, 1, 2), {"n2"}));
    submit(1, on(limited(4, 1, 1), {"n1"}));
    estimate(2);
    EXPECT_EQ(expected(3), 60);
    EXPECT_EQ(expected(4), as_recorded ? 60 + 120 : 60 + 600);
  }
}

// As recorded all nodes count: 2 of p is expected on n3, which is a node of q alone, and though it
// is down.
TEST_F(StartEstimateRules, R8_3_AsRecordedNodesOfOtherPartitionsCount) {
  for (const bool as_recorded : {false, true}) {
    c_ = whole_nodes({});
    c_.cluster.scheduler = SchedulerType::kBuiltin;
    c_.cluster.quirks = only(&Quirks::estimates_use_all_nodes, as_recorded);
    auto all = nodes("n", 1, 3);
    all[2].state = NodeState::kDown;
    add("p", {all[0], all[1]});
    add("q", {all[2]});
    begin(all);
    submit(0, limited(1, 2, 5, "p"));
    pass(0);
    submit(1, limited(2, 1, 1, "p"));
    estimate(2);
    EXPECT_EQ(expected(2), as_recorded ? 2 : 300);
  }
}

// As recorded the estimates are made in the order of QOS and of priorities, also where the main
// pass walks the job table (P21): 4 may preempt 3 and is before it, and the nice 2 is last.
TEST_F(StartEstimateRules, R8_3_AsRecordedPrioritiesOrderThem) {
  for (const bool as_recorded : {false, true}) {
    c_ = with_qos({{"low", ""}, {"high", "low"}});
    c_.cluster.gang = false;
    c_.cluster.scheduler = SchedulerType::kBuiltin;
    c_.cluster.quirks = only(&Quirks::estimates_go_by_priority, as_recorded);
    c_.cluster.preempt_type = PreemptType::kQos;
    c_.cluster.preempt_mode = PreemptMode::kCancel;
    begin_with(1);
    const auto of_qos = [](JobRequest request, const std::string& qos) {
      request.qos = qos;
      return request;
    };
    JobRequest nice = of_qos(limited(2, 1, 1), "low");
    nice.nice = 100;
    submit(0, of_qos(limited(1, 1, 1), "high"));
    pass(0);
    submit(1, nice);
    submit(1, of_qos(limited(3, 1, 1), "low"));
    submit(1, of_qos(limited(4, 1, 1), "high"));
    estimate(2);
    EXPECT_EQ(expected(2), as_recorded ? 180 : 60);
    EXPECT_EQ(expected(3), 120);
    EXPECT_EQ(expected(4), as_recorded ? 60 : 180);
  }
}

// As recorded: the windows of a look ahead end with half minutes of the clock, if it is known. 1
// and 2 end at 60 and at 95. By a clock that began at its second 10 the half minute in which 1 ends
// is over at 80, and the first window at 110, so that 3 is expected when both have ended; by one
// that began at 29 these are 61 and 91.
TEST_F(StartEstimateRules, R8_3_AsRecordedWindowsFollowTheClock) {
  const auto full = [](std::int64_t id) {
    JobRequest request = limited(id, 1, 1);
    request.tasks = 4;
    return request;
  };
  for (const int clock : {10, 29}) {
    c_ = whole_nodes({});
    c_.cluster.select = SelectType::kConsTres;
    c_.cluster.scheduler = SchedulerType::kBuiltin;
    c_.cluster.quirks = only(&Quirks::ends_come_in_batches);
    c_.cluster.recorded_clock = std::chrono::seconds{clock};
    begin_with(2);
    submit(0, full(1));
    pass(0);
    submit(35, full(2));
    pass(35);
    submit(36, full(3));
    estimate(37);
    EXPECT_EQ(expected(3), clock == 10 ? 95 : 60);
  }
}

// No victims are counted on: 2 may end 1, and is expected when 1 ends by itself.
TEST_F(StartEstimateRules, R8_3_NoPreemptionIsExpected) {
  const auto two = nodes("n", 1, 2);
  preempt_by_tier(PreemptMode::kCancel, two);
  begin(two);
  submit(0, limited(1, 2, 5, "low"));
  pass(0);
  submit(1, limited(2, 2, 1, "high"));
  estimate(2);
  EXPECT_EQ(expected(2), 300);
}

// P14: 2 has claimed both nodes for a minute, and 3 does not get n2 before that, though it is
// ahead.
TEST_F(StartEstimateRules, R8_3_NodesThatAreClaimedAreExpectedWhenTheClaimEnds) {
  const auto two = nodes("n", 1, 2);
  preempt_by_tier(PreemptMode::kCancel, two);
  begin(two);
  submit(0, on(limited(1, 1, 5, "low"), {"n1"}));
  pass(0);
  JobRequest preemptor = limited(2, 2, 1, "high");
  preemptor.nice = 100;
  submit(1, preemptor);
  pass(1);
  submit(2, on(limited(3, 1, 1, "high"), {"n2"}));
  estimate(2);
  EXPECT_EQ(expected(3), 2 + 60);
}

// 50 records, or as many as bf_max_job_test says.
TEST_F(StartEstimateRules, R8_3_AtMostFiftyJobs) {
  for (const int asked : {500, 3}) {
    c_ = gang_linear({});
    c_.cluster.gang = false;
    c_.cluster.scheduler = SchedulerType::kBuiltin;
    c_.cluster.backfill.max_job_test = asked;
    begin_with(1);
    submit(0, limited(1, 1, 1));
    pass(0);
    // Job 1 has the node until 60, and each of the others for a minute behind the one before.
    for (std::int64_t id = 2; id <= 60; ++id) submit(1, limited(id, 1, 1));
    estimate(2);
    const int most = asked == 3 ? 3 : 50;
    EXPECT_EQ(expected(1 + most), 60 * most);
    EXPECT_EQ(expected(2 + most), -1);
  }
}

// An estimate is taken back when nothing is known any longer, and with another scheduler.
TEST_F(StartEstimateRules, R8_3_AnEstimateThatHoldsNoLongerIsTakenBack) {
  begin_with(2);
  submit(0, limited(1, 2, 1));
  pass(0);
  submit(1, limited(2, 2, 1));
  estimate(2);
  ASSERT_EQ(expected(2), 60);
  // Job 2 needs both nodes: with n1 down there is no instant to name.
  NodeSpec down = nodes("n", 1, 1).front();
  down.state = NodeState::kDown;
  driver_->step(at(3), NodeUpdate{down});
  estimate(4);
  EXPECT_EQ(expected(2), -1);

  down.state = NodeState::kUp;
  driver_->step(at(5), NodeUpdate{down});
  estimate(6);
  ASSERT_EQ(expected(2), 60);
  // The next scheduler makes promises of its own; until then nothing is promised.
  c_.cluster.scheduler = SchedulerType::kBackfill;
  driver_->step(at(7), Configure{std::make_shared<const Configuration>(c_)});
  EXPECT_EQ(expected(2), -1);
}

// Own timing: every 30 s if anything has changed, and not at all if nothing has.
TEST_F(StartEstimateRules, R8_3_AreMadeAtIntervals) {
  const auto four = nodes("n", 1, 4);
  add("p", four);
  c_.cluster.backfill.interval = seconds(30);
  Driver driver{c_, four};
  RuleTest::submit(driver, 0, limited(1, 4, 2));
  RuleTest::submit(driver, 1, limited(2, 4, 1));
  driver.run_until(at(1));
  const auto starts = [&](std::int64_t id) { return driver.view(id).expected_start.has_value(); };
  RuleTest::submit(driver, 2, limited(3, 1, 1));
  driver.run_until(at(20));
  EXPECT_FALSE(starts(3)) << "the interval is not over";
  driver.run_until(at(40));
  EXPECT_TRUE(starts(2));
  EXPECT_TRUE(starts(3));
  driver.take_log();
  driver.run_until(at(100));
  for (const Decision& decision : driver.take_log()) {
    EXPECT_FALSE(std::holds_alternative<Planned>(decision)) << "nothing has changed";
  }
}

// A simulation reads none, and they would be most of its work.
TEST_F(StartEstimateRules, R8_3_AreNotMadeIfNobodyReadsThem) {
  const auto four = nodes("n", 1, 4);
  add("p", four);
  Driver driver{c_, four, {.tells_starts = false}};
  RuleTest::submit(driver, 0, limited(1, 4, 2));
  RuleTest::submit(driver, 1, limited(2, 4, 1));
  driver.run_until(at(100));
  EXPECT_FALSE(driver.view(2).expected_start);
  driver.run_until(at(150));
  EXPECT_EQ(driver.view(2).state, JobState::kRunning) << "it starts all the same";
}

}  // namespace
}  // namespace sched::testing
