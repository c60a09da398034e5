// Tests of which jobs the backfill starts and when, and what it promises to jobs that wait (chapter
// 8); the recordings bf_* and rnd_backfill_* show more.
#include "scheduler/testing/rule_test.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace sched::testing {
namespace {

class BackfillRules : public RuleTest {
 protected:
  BackfillRules() {
    c_.cluster.scheduler = SchedulerType::kBackfill;
    c_.cluster.backfill.resolution = seconds(1);
  }
  // A main pass and the backfill behind it at one instant, as recordings have it ("both").
  void pass(double t) { driver_->step(at(t), Pass{.main = true, .backfill = true}); }
  bool runs(std::int64_t id) const { return state(id) == JobState::kRunning; }
};

// 1 runs on two of four nodes until 120; 2 waits for all of them from then on. 3 and 4 fit on the
// other two; 3 would run from 2 to 182 and 4 from 2 to 62.
TEST_F(BackfillRules, R8_2_AJobStartsBeforeOthersIfItDelaysNone) {
  begin_with(4);
  submit(0, limited(1, 2, 2));
  pass(0);
  submit(1, limited(2, 4, 1));
  submit(1, limited(3, 2, 3));
  submit(1, limited(4, 2, 1));
  pass(2);
  EXPECT_FALSE(runs(2));
  EXPECT_FALSE(runs(3));  // would run when 1 is expected to end
  EXPECT_TRUE(runs(4));
  driver_->step(at(62), JobGone{JobId{4}});
  driver_->step(at(119), JobGone{JobId{1}});
  pass(119);
  EXPECT_TRUE(runs(2));
}

// sched/builtin has no such pass.
TEST_F(BackfillRules, R8_3_BuiltinStartsNoneBeforeOthers) {
  c_.cluster.scheduler = SchedulerType::kBuiltin;
  begin_with(4);
  // With sched/backfill job 3 would run: it fits beside job 1 and ends before it.
  for (const JobRequest& request : {limited(1, 2, 2), limited(2, 4, 1), limited(3, 2, 1)}) {
    submit(0, request);
  }
  pass(1);
  EXPECT_FALSE(runs(3));
}

// The whole node is kept for the job that waits for a part of it.
TEST_F(BackfillRules, R8_1_APromiseIsOfWholeNodes) {
  c_.cluster.select = SelectType::kConsTres;
  begin_with(1);
  submit(0, with_tasks(limited(1, 1, 2), 3));
  pass(0);
  submit(1, with_tasks(limited(2, 1, 2), 2));  // gets 2 of 4 cores when 1 ends
  submit(1, with_tasks(limited(3, 1, 3), 1));  // would be beside both of them
  submit(1, with_tasks(limited(4, 1, 1), 1));  // is gone by then
  pass(2);
  EXPECT_FALSE(runs(2));
  EXPECT_FALSE(runs(3));
  EXPECT_TRUE(runs(4));
}

// The main pass stops at the first job that has to wait, the backfill ends others for a job behind.
TEST_F(BackfillRules, R8_1_3i_TheBackfillBeginsPreemption) {
  const auto two = nodes("n", 1, 2);
  preempt_by_tier(PreemptMode::kCancel, two);
  begin(two);
  // Job 1 may be preempted by both jobs that come later, job 2 by neither.
  submit(0, on(limited(1, 1, 5, "low"), {"n1"}));
  submit(0, on(limited(2, 1, 5, "high"), {"n2"}));
  pass(0);
  submit(1, limited(3, 2, 1, "high"));  // waits for 2
  submit(1, on(limited(4, 1, 1, "mid"), {"n1"}));
  driver_->step(at(2), Pass{});
  EXPECT_TRUE(ends().empty());
  pass(3);
  ASSERT_EQ(ends().size(), 1U);
  driver_->step(at(4), JobGone{JobId{1}});
  pass(4);
  EXPECT_TRUE(runs(4));
  EXPECT_FALSE(runs(3));
}

// A job with a least time limit is planned with it, and gets what is left before the next promise.
TEST_F(BackfillRules, R8_1_3d_TimeMinIsStretchedAsFarAsNoPromiseIsDelayed) {
  begin_with(2);
  submit(0, limited(1, 1, 10));
  pass(0);
  submit(1, limited(2, 2, 1));  // promised both nodes at 600
  JobRequest request = limited(3, 1, 30);
  request.time_min = std::chrono::minutes{2};
  submit(1, request);
  pass(60);
  ASSERT_TRUE(runs(3));
  driver_->step(at(61), JobGone{JobId{1}});
  // Nine minutes from 60 on: 3 ends at 600, when both nodes are promised to 2.
  submit(61, limited(4, 1, 8));  // job 3 ends at 600, so this one may not run beyond it either
  pass(62);
  EXPECT_TRUE(runs(4));
}

// A job's start carries its limit, and a new leader keeps it.
TEST_F(BackfillRules, R8_1_3d_ALimitThatWasCutIsKept) {
  begin_with(2);
  submit(0, limited(1, 1, 10));
  pass(0);
  submit(1, limited(2, 2, 1));  // promised both nodes at 600
  JobRequest request = limited(3, 1, 30);
  request.time_min = std::chrono::minutes{2};
  submit(1, request);
  pass(60);
  std::vector<std::optional<base::Duration>> cut;
  for (const Decision& decision : driver_->take_log()) {
    if (const auto* start = std::get_if<Start>(&decision)) cut.push_back(start->time_limit);
  }
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0], std::chrono::minutes{10});
  ASSERT_EQ(cut[1], std::chrono::minutes{9});

  // A new leader, which gets job 3's object.
  Driver next{c_, nodes("n", 1, 2)};
  next.ends_at_once = false;
  JobFacts running = JobFacts::of(request);
  running.state = JobState::kRunning;
  running.partition = next.scheduler().find_partition("p");
  running.allocation = *driver_->view(3).allocation;
  running.allocated_at = at(60);
  running.ready = true;
  running.start_time = running.clock.as_of = at(60);
  running.time_limit = cut[1];
  next.scheduler().restore_from_published(at(60), {running}, {});
  next.run_until(at(599));
  EXPECT_TRUE(ends(next).empty());
  next.run_until(at(601));
  EXPECT_EQ(ends(next).size(), 1U);
}

// R8.2: the limit is what others were promised their nodes by, so another nice value leaves it as
// it is. It is forgotten when the user says another limit.
TEST_F(BackfillRules, R8_1_3d_ALimitThatWasCutIsKeptUntilTheUserChangesTheLimit) {
  begin_with(2);
  submit(0, limited(1, 1, 10));
  pass(0);
  submit(1, limited(2, 2, 1));  // promised both nodes at 600
  JobRequest request = limited(3, 1, 30);
  request.time_min = std::chrono::minutes{2};
  submit(1, request);
  pass(60);
  ASSERT_TRUE(runs(3));
  driver_->take_log();
  const auto limits = [&] {
    std::vector<std::optional<base::Duration>> found;
    for (const Decision& decision : driver_->take_log()) {
      const auto* change = std::get_if<LimitChanged>(&decision);
      if (change != nullptr) found.push_back(change->time_limit);
    }
    return found;
  };
  request.nice = 5;
  driver_->step(at(70), Update{request});
  EXPECT_TRUE(limits().empty());
  request.time_limit = std::chrono::minutes{40};
  driver_->step(at(80), Update{request});
  EXPECT_EQ(limits(), (std::vector<std::optional<base::Duration>>{std::chrono::minutes{40}}));
}

// A young job gets no promise, and no job must wait for it, neither here nor in the main pass.
TEST_F(BackfillRules, R8_2_YoungJobsGetNoPromise) {
  c_.cluster.backfill.min_age_reserve = seconds(20);
  begin_with(2);
  submit(0, limited(1, 1, 1));
  pass(0);
  submit(10, limited(2, 2, 1));
  submit(12, limited(3, 1, 5));
  // At 20 job 2 is 10 s old: 3 passes it. At 31 it is 21 s old and is promised both nodes from 60
  // on, the end of 1; five minutes of 4 would reach beyond that.
  driver_->step(at(20), Pass{});
  EXPECT_TRUE(runs(3));
  driver_->step(at(21), JobGone{JobId{3}});
  submit(31, limited(4, 1, 5));
  pass(31);
  EXPECT_FALSE(runs(4));  // job 2 is old enough now
}

// bf_max_job_test and the limits for each user count the records that are tried. Here one job of
// each user is: a's job 2 is tried and must wait, so its job 3, which would fit, is not looked
// at.
TEST_F(BackfillRules, R8_2_APassTriesSoManyJobs) {
  c_.cluster.backfill.max_job_user = 1;
  begin_with(2);
  submit(0, limited(1, 1, 5));
  pass(0);
  JobRequest request = limited(2, 2, 1);
  request.user = "a";
  submit(1, request);
  request = limited(3, 1, 1);
  request.user = "a";
  submit(1, request);
  request = limited(4, 1, 1);
  request.user = "b";
  submit(1, request);
  pass(2);
  EXPECT_FALSE(runs(3));
  EXPECT_TRUE(runs(4));
}

// Own timing: a pass every bf_interval while something changes, none when nothing does.
TEST_F(BackfillRules, R8_1_APassIsMadeEveryInterval) {
  const auto two = nodes("n", 1, 2);
  Configuration c = whole_nodes({closed("p", two)});
  c.cluster.backfill.interval = seconds(30);
  Driver driver{c, two};
  driver.step(at(0), Submit{limited(1, 1, 10)});
  driver.step(at(0), Submit{limited(2, 2, 10)});
  driver.run_until(at(5));
  driver.step(at(5), Submit{limited(3, 1, 5)});
  driver.run_until(at(29));
  EXPECT_EQ(driver.state(3), "PD");
  // The pass at 30 is the first of the backfill after job 3 came.
  driver.run_until(at(31));
  EXPECT_EQ(driver.state(3), "R(1)");
  driver.run_until(at(61));                           // finds nothing more to do
  EXPECT_EQ(driver.scheduler().next_due(), at(330));  // the time limit of job 3
}

}  // namespace
}  // namespace sched::testing
