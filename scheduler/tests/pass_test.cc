// When a pass is made and what it does with a job that cannot start (3.1, 3.4 to 3.6), and which
// nodes it takes (4.2, 4.4).
#include "scheduler/testing/rule_test.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sched::testing {
namespace {

using MainPassRules = RuleTest;

// 3.1: sched_interval -1 leaves the backfill's passes; sched/builtin has none.
TEST_F(MainPassRules, R3_1_WithoutTheMainLoopOnlyTheBackfillStarts) {
  const auto two = nodes("n", 1, 2);
  Configuration c = whole_nodes({closed("p", two)});
  c.cluster.queue.sched_interval = seconds(-1);
  c.cluster.backfill.interval = seconds(20);
  Driver driver{c, two};
  submit(driver, 0, job(1, 1));  // the first pass
  submit(driver, 1, job(2, 1));
  driver.run_until(at(19));
  EXPECT_EQ(driver.state(2), "PD");
  driver.run_until(at(20));
  EXPECT_EQ(driver.state(2), "R(0)");
  c.cluster.scheduler = SchedulerType::kBuiltin;
  Driver builtin{c, two};
  submit(builtin, 0, job(1, 1));
  builtin.run_until(at(100));
  EXPECT_EQ(builtin.state(1), "PD");
}

// 3.4 step 1: CompleteWait, for each job that completes from its own end on.
TEST_F(MainPassRules, R3_4_1_NothingStartsWhileAJobHasBeenCompletingForLess) {
  const auto four = nodes("n", 1, 4);
  Configuration c = whole_nodes({closed("p", four)});
  c.cluster.queue.complete_wait = seconds(10);
  Driver driver{c, four};
  driver.ends_at_once = false;
  submit(driver, 0, job(1, 1));
  submit(driver, 0, job(2, 1));
  driver.step(at(20), Cancel{JobId{1}});
  driver.step(at(24), Cancel{JobId{2}});
  submit(driver, 25, job(3, 1));
  driver.run_until(at(32));
  EXPECT_EQ(driver.state(3), "PD");
  // Job 1 has been completing for 13 s.
  driver.step(at(33), JobGone{.job = JobId{2}, .verdict = JobState::kCancelled});
  driver.run_until(at(33));
  EXPECT_EQ(driver.state(3), "R(0)");
  // Job 3 is not gone at 60, but no pass waits longer.
  driver.step(at(50), Cancel{JobId{3}});
  submit(driver, 51, job(4, 1));
  driver.run_until(at(59));
  EXPECT_EQ(driver.state(4), "PD");
  driver.run_until(at(60));
  EXPECT_EQ(driver.state(4), "R(0)");
}

// 3.4 step 5: sched_max_job_start.
TEST_F(MainPassRules, R3_4_5_APassStartsNoMoreThanItMay) {
  const auto three = nodes("n", 1, 3);
  Configuration c = whole_nodes({closed("p", three)});
  c.cluster.queue.max_job_start = 2;
  Driver driver{c, three, make_replay()};
  for (std::int64_t id = 1; id <= 3; ++id) driver.step(at(0), Submit{job(id, 1)});
  driver.step(at(1), Pass{});
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
  EXPECT_EQ(state(driver, 3), JobState::kPending);
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 3), JobState::kRunning);
}

// 3.4 step 9: a job of several partitions is not held for what one of them can never do.
TEST_F(MainPassRules, R3_4_9_NeverInOnePartitionIsNotNever) {
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

// 3.5 step 3: it can never run, and does not keep the nodes that it names from other jobs.
TEST_F(MainPassRules, R3_5_3_ARequiredNodeThatDoesNotExistIsNeverBusy) {
  const auto two = nodes("n", 1, 2);
  add("p", two);
  begin(two);
  tell(0, Submit{on(job(1, 2), {"n1", "gone"})});
  EXPECT_EQ(driver_->view(1).reason, Reason::kBadConstraints);
  tell(1, Submit{on(job(2, 1), {"n1"})});
  EXPECT_EQ(state(2), JobState::kRunning);
}

// 4.2.2: what one job asks of the nodes' disk does not concern the next one.
TEST_F(MainPassRules, R4_2_2_TmpDiskFiltersTheNodesOfItsOwnJobOnly) {
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
  // As job 1, after a job of another kind: sets of nodes that are kept must be those of this
  // request.
  large.id = JobId{3};
  tell(2, Submit{large});
  EXPECT_EQ(driver_->view(3).reason, Reason::kBadConstraints);
}

// 4.4.4 step 5: "with required nodes all of them must lie in that run"; among such runs the first,
// for a job that takes idle nodes (recorded).
TEST_F(MainPassRules, R4_4_4_ContiguousNodesAreThoseAroundTheRequiredOnes) {
  const auto ten = nodes("n", 1, 10);
  add("p", ten);
  begin(ten);
  tell(0, Submit{on(job(1, 1), {"n7"})});
  JobRequest block = on(job(2, 3), {"n2"});
  // n1 to n3 and n2 to n4 both hold n2; a job that takes idle nodes gets the first.
  block.contiguous = true;
  tell(1, Submit{block});
  EXPECT_EQ(driver_->nodes_of(2), (std::vector<std::string>{"n1", "n2", "n3"}));
}

// Two nodes that refuse a start do not have it by turns.
TEST_F(MainPassRules, NodesThatRefusedAStartAreAvoidedTogether) {
  const auto three = nodes("n", 1, 3);
  Driver driver{whole_nodes({closed("p", three)}), three};
  driver.ready_after.reset();
  submit(driver, 0, job(1, 1));
  for (const std::string node : {"n1", "n2"}) {
    ASSERT_EQ(driver.nodes_of(1), std::vector<std::string>{node});
    const base::Instant later = driver.now() + seconds(10);
    driver.step(later,
                StartRefused{.job = JobId{1}, .avoid_nodes = {node}, .avoid_for = seconds(60)});
    driver.run_until(later + seconds(5));
  }
  EXPECT_EQ(driver.nodes_of(1), std::vector<std::string>{"n3"});
}

// A node that comes back under its name makes the impossible possible, also if the queue is empty
// and nothing else happens.
TEST_F(MainPassRules, R2_4_AJobThatNoNodesCouldHoldStartsWhenANodeIsBack) {
  for (const SchedulerType type : {SchedulerType::kBuiltin, SchedulerType::kBackfill}) {
    const auto two = nodes("n", 1, 2);
    Configuration c = whole_nodes({closed("p", two)});
    c.cluster.scheduler = type;
    Driver driver{c, two};
    driver.step(at(0), NodeRemove{two[0].name});
    submit(driver, 1, job(1, 2));
    driver.run_until(at(300));
    EXPECT_EQ(driver.view(1).reason, Reason::kBadConstraints);
    driver.step(at(300), NodeUpdate{two[0]});
    driver.run_until(at(301));
    EXPECT_EQ(driver.view(1).state, JobState::kRunning);
  }
}

}  // namespace
}  // namespace sched::testing
