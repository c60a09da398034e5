// The worked examples of slurm-semantics.md chapter 14 that need select/linear, with the
// scheduler's own timing: slices on the grid of the epoch, ticks at multiples of 30 s.
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

using Names = std::vector<std::string>;

class GangExamples : public ::testing::Test {
 protected:
  std::vector<NodeSpec> five = nodes("n", 12, 16);
  Driver driver{gang_linear({partition("active", five)}), five};

  // Expects the states at t, e.g. {"R(11)", "S(0)"} for `ids`.
  void expect_at(double t, std::vector<std::int64_t> ids, const std::vector<std::string>& want) {
    driver.run_until(at(t));
    std::vector<std::string> got;
    for (const std::int64_t id : ids) got.push_back(driver.state(id));
    EXPECT_EQ(got, want) << "at " << t;
  }
  void submit(double t, const JobRequest& request) {
    driver.run_until(at(t));
    driver.step(at(t), Submit{request});
    driver.run_until(at(t));
  }
};

// 14.1: job 3 starts 11 s before a boundary, job 4 one second before it.
TEST_F(GangExamples, TwoFullSizeJobsTakeTurnsFromTheSecondTickOn) {
  // Each job holds all five nodes. Ticks: 30 (3 becomes ACTIVE; 4 does not fit), 60 (3 moves behind
  // 4), 90, 120. Run time of 3 at 60: 60 - 19 = 41 s.
  submit(19, job(3, 5));
  submit(29, job(4, 5));
  EXPECT_EQ(driver.nodes_of(4), (Names{"n12", "n13", "n14", "n15", "n16"}));
  expect_at(29, {3, 4}, {"R(10)", "S(0)"});
  expect_at(30, {3, 4}, {"R(11)", "S(0)"});
  expect_at(59.5, {3, 4}, {"R(40)", "S(0)"});
  expect_at(60, {3, 4}, {"S(41)", "R(0)"});
  expect_at(90, {3, 4}, {"R(41)", "S(30)"});
  expect_at(120, {3, 4}, {"S(71)", "R(30)"});
}

// 14.1, last sentence: had job 4 come after the first tick, the first swap would be a tick later.
TEST_F(GangExamples, NewcomerAfterTheTickWaitsForOneMore) {
  submit(19, job(3, 5));
  submit(31, job(4, 5));
  expect_at(60, {3, 4}, {"R(41)", "S(0)"});
  expect_at(90, {3, 4}, {"S(71)", "R(0)"});
}

// A hole is filled at the boundary when it is closer than the lead. Two jobs that fill it and
// are in no other's way are in one timetable until then: their node's.
TEST(GangTimetables, HoleFilledByTwoAtTheBoundaryIsInOneTimetable) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one)});
  c.cluster.select = SelectType::kConsTres;
  c.cluster.unit = SelectUnit::kCore;
  c.cluster.task_affinity = false;  // no CPU sets in timetables
  c.cluster.timetable_lead = seconds(12);
  Driver driver{c, one};
  const auto submit = [&](double t, std::int64_t id, int tasks) {
    JobRequest request = job(id, 1);
    request.tasks = tasks;
    driver.run_until(at(t));
    driver.step(at(t), Submit{request});
    driver.run_until(at(t));
  };
  submit(1, 1, 4);
  submit(2, 2, 2);
  submit(3, 3, 2);
  driver.run_until(at(110));  // before the boundary at 120, in a slice of job 1
  if (driver.state(1)[0] != 'R') driver.run_until(at(140));
  ASSERT_EQ(driver.state(1)[0], 'R');
  driver.step(driver.now(), JobGone{JobId{1}});
  driver.run_until(driver.now());
  ASSERT_EQ(driver.published().size(), 1U);
  EXPECT_EQ(driver.published().begin()->second.entries.size(), 2U);
  EXPECT_EQ(driver.state(2)[0], 'S');
  driver.run_until(driver.now() + seconds(10));
  EXPECT_EQ(driver.state(2)[0], 'R');
  EXPECT_EQ(driver.state(3)[0], 'R');
  EXPECT_TRUE(driver.published().empty());
}

// The tiers decide if a job that is not ready yet must wait for its nodes' other jobs.
TEST(GangTimetables, ChangeOfATierTellsTheNodesOfAJobThatStarts) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one), partition("q", one)});
  Driver driver{c, one};
  driver.step(at(1), Submit{job(1, 1, "p")});
  driver.run_until(at(1));
  driver.ready_after.reset();
  driver.step(at(2), Submit{job(2, 1, "q")});
  driver.run_until(at(2));
  EXPECT_TRUE(driver.published().empty());  // of one tier: they run at the same time
  c.partitions[1].priority_tier = 2;
  driver.step(at(3), Configure{std::make_shared<const Configuration>(c)});
  driver.run_until(at(3));
  EXPECT_EQ(driver.published().size(), 1U);
}

// A job that is completing when the gang is turned off is gone a moment later.
TEST(GangTimetables, TurnedOffWhileAJobCompletes) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one)});
  Driver driver{c, one, make_replay()};
  driver.ends_at_once = false;
  driver.step(at(1), Submit{job(1, 1)});
  driver.step(at(1), Pass{});
  driver.step(at(2), Cancel{JobId{1}});
  c.cluster.gang = false;
  driver.step(at(3), Configure{std::make_shared<const Configuration>(c)});
  driver.step(at(4), JobGone{JobId{1}});
  EXPECT_EQ(driver.state(1), "done");
}

// 14.2: 9 and 11 are on n12 to n14 and take turns. 10 is on the other two nodes, in conflict with
// none: moved to the back and selected again in the same rebuild, it never stops (R6.7).
TEST_F(GangExamples, PartialOverlapNeverStopsWhoConflictsWithNobody) {
  submit(19, job(9, 3));
  submit(22, job(10, 2));
  submit(25, job(11, 3));
  EXPECT_EQ(driver.nodes_of(9), (Names{"n12", "n13", "n14"}));
  EXPECT_EQ(driver.nodes_of(10), (Names{"n15", "n16"}));
  EXPECT_EQ(driver.nodes_of(11), (Names{"n12", "n13", "n14"}));
  expect_at(30, {9, 10, 11}, {"R(11)", "R(8)", "S(0)"});
  expect_at(60, {9, 10, 11}, {"S(41)", "R(38)", "R(0)"});
  expect_at(90, {9, 10, 11}, {"R(41)", "R(68)", "S(30)"});
  expect_at(120, {9, 10, 11}, {"S(71)", "R(98)", "R(30)"});
  for (const Decision& decision : driver.take_log()) {
    const auto* suspend = std::get_if<Suspend>(&decision);
    EXPECT_FALSE(suspend != nullptr && suspend->job == JobId{10});
  }
}

// 14.3: 13 needs all nodes, and under plain FIFO would hold up 14. Rows absorb it: it starts and
// waits for its turn, and 14 fills the hole beside 12 at once (R3.1). 12 starts at 0 of the example
// = 10 here, ticks at 20, 50, 80, 110 = 30, 60, 90, 120.
TEST_F(GangExamples, LocalBackfilling) {
  submit(10, job(12, 3));
  submit(15, job(13, 5));
  submit(18, job(14, 2));
  EXPECT_EQ(driver.nodes_of(14), (Names{"n15", "n16"}));
  expect_at(18, {12, 13, 14}, {"R(8)", "S(0)", "R(0)"});
  expect_at(30, {12, 13, 14}, {"R(20)", "S(0)", "R(12)"});
  expect_at(60, {12, 13, 14}, {"S(50)", "R(0)", "S(42)"});
  expect_at(90, {12, 13, 14}, {"R(50)", "S(30)", "R(42)"});
  expect_at(120, {12, 13, 14}, {"S(80)", "R(30)", "S(72)"});
}

// 14.6: five jobs of one node each, then one of three nodes and a higher tier. It starts at once
// over the first three (R6.32); these stop in its shadow without any victim list, and go on at the
// instant of its end (R6.33), not at a tick.
TEST(SuspendPreemption, VictimsResumeAtOnceWhenThePreemptorIsGone) {
  const auto five = nodes("n", 12, 16);
  Configuration configuration =
      gang_linear({partition("active", five, OverSubscribe::kForce, 1, 1),
                   partition("hipri", five, OverSubscribe::kForce, 1, 2)});
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kSuspend;
  Driver driver{configuration, five};
  for (std::int64_t id = 485; id <= 489; ++id) {
    driver.step(at(1), Submit{job(id, 1)});
    driver.run_until(at(1));
  }
  driver.run_until(at(28));
  driver.step(at(28), Submit{job(490, 3, "hipri")});
  driver.run_until(at(28));
  EXPECT_EQ(driver.nodes_of(490), (Names{"n12", "n13", "n14"}));
  EXPECT_EQ(driver.state(485), "S(27)");
  EXPECT_EQ(driver.view(485).reason, Reason::kPreempted);
  EXPECT_EQ(driver.state(488), "R(27)");
  driver.run_until(at(58));
  EXPECT_EQ(driver.state(490), "R(30)");
  EXPECT_EQ(driver.state(485), "S(27)");
  driver.step(at(58), JobGone{JobId{490}});
  EXPECT_EQ(driver.state(485), "R(27)");
  driver.run_until(at(61));
  EXPECT_EQ(driver.state(485), "R(30)");
  EXPECT_EQ(driver.state(488), "R(60)");
}

// Two jobs of one node take turns when one of a higher tier comes. The one that is between two of
// its turns no longer has any; when the higher job is gone, the other is the one between two turns.
TEST(SuspendPreemption, AJobBetweenTwoOfItsTurnsSaysThatItHasNone) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Configuration configuration = gang_linear({partition("low", one, OverSubscribe::kForce, 2, 1),
                                             partition("high", one, OverSubscribe::kForce, 1, 2)});
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kSuspend;
  Driver driver{configuration, one};
  // The last cause of each job that was stopped, or stays stopped for another cause, since then.
  const auto suspends = [&] {
    std::map<JobId, Reason> causes;
    for (const Decision& decision : driver.take_log()) {
      const auto* const suspend = std::get_if<Suspend>(&decision);
      if (suspend != nullptr) causes[suspend->job] = suspend->cause;
    }
    return causes;
  };
  using Causes = std::map<JobId, Reason>;
  driver.step(at(1), Submit{job(1, 1, "low")});
  driver.run_until(at(2));
  driver.step(at(2), Submit{job(2, 1, "low")});
  driver.run_until(at(70));
  EXPECT_EQ(driver.state(1), "S(59)");
  EXPECT_EQ(driver.state(2), "R(10)");
  driver.take_log();
  driver.step(at(70), Submit{job(3, 1, "high")});
  driver.run_until(at(80));
  EXPECT_EQ(suspends(), (Causes{{JobId{1}, Reason::kPreempted}, {JobId{2}, Reason::kPreempted}}));
  driver.run_until(at(200));
  EXPECT_EQ(suspends(), Causes{}) << "said once";
  driver.step(at(200), JobGone{JobId{3}, JobState::kCompleted, 0});
  driver.run_until(at(201));
  const JobId waits{driver.view(1).state == JobState::kSuspended ? 1 : 2};
  EXPECT_EQ(suspends(), (Causes{{waits, Reason::kTimeslice}}));
}

// 14.11 a: FORCE:2 on all five nodes. The third job waits in the queue: it is not a third of the
// turns.
TEST_F(GangExamples, ThirdOfTwoShareIsPending) {
  Driver two{gang_linear({partition("p", five, OverSubscribe::kForce, 2)}), five};
  for (std::int64_t id = 1; id <= 3; ++id) two.step(at(1), Submit{job(id, 5)});
  two.run_until(at(1));
  EXPECT_EQ(two.state(3), "PD");
  EXPECT_EQ(two.view(3).reason, Reason::kResources);
}

// 14.11 e, and R4.13: the partner runs at once, and the suspended one comes back as a start.
TEST_F(GangExamples, UserSuspendLetsThePartnerRunAtOnce) {
  submit(1, job(1, 5));
  submit(2, job(2, 5));
  driver.run_until(at(10));
  driver.step(at(10), UserSuspend{JobId{1}});
  EXPECT_EQ(driver.state(1), "S(9)");
  EXPECT_EQ(driver.view(1).reason, Reason::kUser);
  EXPECT_EQ(driver.state(2), "R(0)");
  expect_at(100, {1, 2}, {"S(9)", "R(90)"});
  driver.step(at(100), UserResume{JobId{1}});
  expect_at(100, {1, 2}, {"S(9)", "R(90)"});  // P3: it waits for its turn like a start
  expect_at(150, {1, 2}, {"R(9)", "S(140)"});
}

// 14.11 f: jobs of one size on the same nodes; the hole is filled at once, by a FILLER.
TEST_F(GangExamples, HoleIsFilledAtOnceByTheFirstInTheList) {
  submit(1, job(1, 5));
  submit(2, job(2, 5));
  submit(3, job(3, 5));
  driver.run_until(at(40));
  driver.step(at(40), JobGone{JobId{1}});
  expect_at(40, {2, 3}, {"R(0)", "S(0)"});
  expect_at(60, {2, 3}, {"R(20)", "S(0)"});  // FILLER keeps running through the next tick
  expect_at(90, {2, 3}, {"S(50)", "R(0)"});
}

// architecture.md 2: a node lists its pods only when one of them is off at some time. The hole is
// filled at the boundary here, since less than `lead` is left in the slot; until then the partner
// is listed.
TEST_F(GangExamples, WhoIsAloneSinceTheBoundaryIsNotListedAnyMore) {
  Configuration configuration = gang_linear({partition("active", five)});
  configuration.cluster.timetable_lead = seconds(2);
  Driver leading{configuration, five};
  for (std::int64_t id = 1; id <= 2; ++id) leading.step(at(1), Submit{job(id, 5)});
  leading.run_until(at(119));
  ASSERT_EQ(leading.state(1), "S(89)");
  leading.step(at(119), JobGone{JobId{2}});
  leading.run_until(at(119));
  EXPECT_EQ(leading.published().begin()->second.entries.size(), 1U);
  leading.run_until(at(121));
  EXPECT_EQ(leading.state(1), "R(90)");
  for (const auto& [node, plan] : leading.published()) EXPECT_TRUE(plan.entries.empty());
}

}  // namespace
}  // namespace sched::testing
