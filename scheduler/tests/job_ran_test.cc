// JobRan: time that a node did not slice counts as run time (architecture.md 3).
#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

bool timed_out(Driver& driver, std::int64_t id) {
  bool found = false;
  for (const Decision& decision : driver.take_log()) {
    const auto* end = std::get_if<End>(&decision);
    found |= end != nullptr && end->job == JobId{id} && end->verdict == EndingVerdict::kTimeout;
  }
  return found;
}

// Jobs 1 and 2 take turns of 30 s on one node since t = 0; job 1 begins.
class JobRanTest : public ::testing::Test {
 protected:
  JobRanTest() : driver_{gang_linear({partition("p", nodes_)}), nodes_} {
    submit(job(1, 1));
    submit(job(2, 1));
  }
  void submit(const JobRequest& request) {
    driver_.step(driver_.now(), Submit{request});
    driver_.run_until(driver_.now());
  }
  void ran(std::int64_t id, double more) {
    driver_.step(driver_.now(), JobRan{JobId{id}, seconds(more)});
    driver_.run_until(driver_.now());
  }
  const std::vector<NodeSpec> nodes_ = nodes("n", 1, 1);
  Driver driver_;
};

// At 100 the node of job 2 reports 25 s without slices. They move from the one sum to the other,
// and later turns are counted on top: both sums together stay the time since the start.
TEST_F(JobRanTest, CountsAsRunTimeAndNotAsSuspended) {
  driver_.run_until(at(100));
  const JobView before = driver_.view(2);
  ran(2, 25);
  EXPECT_EQ(driver_.view(2).run_time, before.run_time + seconds(25));
  EXPECT_EQ(driver_.view(2).suspend_time, before.suspend_time - seconds(25));
  driver_.run_until(at(220));
  EXPECT_EQ(driver_.view(2).run_time + driver_.view(2).suspend_time, seconds(220));
}

// Run time and suspended time together stay the 100 s since the start; a negative figure counts as
// none.
TEST_F(JobRanTest, CountsNoMoreThanTheJobWasSuspended) {
  driver_.run_until(at(100));
  ran(1, 1'000);
  ran(2, -5);
  EXPECT_EQ(driver_.view(1).run_time, seconds(100));
  EXPECT_EQ(driver_.view(1).suspend_time, seconds(0));
  EXPECT_EQ(driver_.view(2).run_time + driver_.view(2).suspend_time, seconds(100));
  EXPECT_GT(driver_.view(2).suspend_time, seconds(0));
}

// Three jobs take turns, and at 200 job 3 is reported to have run for 30 s more. It must end 30 s
// of run time sooner than it otherwise would; a second scheduler, which does not get the event,
// shows how much that is.
TEST_F(JobRanTest, BringsTheTimeLimitNearer) {
  JobRequest limited = job(3, 1);
  limited.time_limit = seconds(120);
  submit(limited);
  driver_.run_until(at(200));
  Driver without{gang_linear({partition("p", nodes_)}), nodes_};  // the same, but for JobRan
  for (const JobRequest& request : {job(1, 1), job(2, 1), limited}) {
    without.step(at(0), Submit{request});
    without.run_until(at(0));
  }
  without.run_until(at(200));
  ran(3, 30);
  double end = 200;
  while (end < 1'000 && !timed_out(driver_, 3)) driver_.run_until(at(++end));
  // 30 s of its limit were over without a turn.
  EXPECT_EQ(without.scheduler().job(JobId{3}, at(end))->run_time, seconds(90));
}

// Job 1 is under a shadow, so its timetable never lets it run. Its node's reports add up to 10 + 60
// + 60 s, beyond its 100.
TEST_F(JobRanTest, EndsAJobAtItsLimitThatNeverRunsByItsTimetable) {
  Driver driver{[&] {
                  Configuration c =
                      gang_linear({partition("low", nodes_, OverSubscribe::kForce, 1),
                                   partition("high", nodes_, OverSubscribe::kForce, 1, 2)});
                  c.cluster.preempt_type = PreemptType::kPartitionPriority;
                  c.cluster.preempt_mode = PreemptMode::kSuspend;
                  return c;
                }(),
                nodes_};
  JobRequest low = job(1, 1, "low");
  low.time_limit = seconds(100);
  driver.step(at(0), Submit{low});
  driver.run_until(at(10));
  driver.step(at(10), Submit{job(2, 1, "high")});
  driver.run_until(at(500));
  ASSERT_EQ(driver.view(1).state, JobState::kSuspended);
  ASSERT_LT(driver.view(1).run_time, seconds(12));
  driver.step(at(500), JobRan{JobId{1}, seconds(60)});
  driver.run_until(at(600));
  EXPECT_EQ(driver.view(1).state, JobState::kSuspended);
  driver.step(at(600), JobRan{JobId{1}, seconds(60)});
  driver.run_until(at(600));
  EXPECT_TRUE(timed_out(driver, 1));
}

// Job 1 has run on two nodes since 0, and stands still since 10 for job 2 on the first of them. The
// leader died between the writes of the two timetables, so at 60 a new one finds that of the second
// node as it was: job 1 runs there. It has run for all of the time, as if that node took no turns.
TEST(JobRanBefore, OnANodeWhoseTimetableWasNotWrittenCounts) {
  const std::vector<NodeSpec> two = nodes("n", 1, 2);
  Configuration c = gang_linear({partition("low", two, OverSubscribe::kForce, 1),
                                 partition("high", two, OverSubscribe::kForce, 1, 2)});
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kSuspend;
  Driver driver{c, two};
  driver.ends_at_once = false;
  driver.step(at(0), Submit{job(1, 2, "low")});
  driver.run_until(at(10));
  driver.step(at(10), Submit{job(2, 1, "high")});
  driver.run_until(at(11));
  ASSERT_EQ(driver.view(1).state, JobState::kSuspended);
  const auto run_time_with = [&](bool second_is_written) {
    Driver next{c, two};
    std::vector<JobFacts> stored;
    for (const auto& [id, partition] : {std::pair{1, "low"}, std::pair{2, "high"}}) {
      const JobView view = driver.view(id);
      JobFacts& job_facts = stored.emplace_back(JobFacts::of(job(id, id == 1 ? 2 : 1, partition)));
      job_facts.state = view.state;
      job_facts.partition = next.scheduler().find_partition(partition);
      job_facts.allocation = *view.allocation;
      job_facts.ready = true;
      job_facts.start_time = job_facts.clock.as_of = *view.start_time;
    }
    std::vector<NodePlan> plans;
    for (const auto& [node, plan] : driver.published()) plans.push_back(plan);
    EXPECT_EQ(plans.size(), 2U);
    if (!second_is_written) {
      plans.back().as_of = at(0);
      plans.back().entries.clear();
      plans.back().timetable = {.slice = plans.back().timetable.slice, .cycle = {{}}};
    }
    next.scheduler().restore_from_published(at(60), stored, plans);
    return next.scheduler().job(JobId{1}, at(60))->run_time;
  };
  EXPECT_EQ(run_time_with(true), seconds(10));
  EXPECT_EQ(run_time_with(false), seconds(60));
}

// The containers of a job ran that ends before it was ready. Its clock does not run, so it has no
// suspended time; and the event may come while the job ends.
TEST(JobRanEarly, CountsForAJobThatIsNotReady) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  driver.ready_after.reset();
  driver.ends_at_once = false;
  driver.step(at(0), Submit{job(1, 1)});
  driver.run_until(at(5));
  driver.step(at(5), JobRan{JobId{1}, seconds(2)});
  EXPECT_EQ(driver.view(1).run_time, seconds(2));
  driver.step(at(6), Cancel{JobId{1}});
  driver.step(at(7), JobRan{JobId{1}, seconds(1)});
  EXPECT_EQ(driver.view(1).run_time, seconds(3));
  EXPECT_EQ(driver.view(1).suspend_time, seconds(0));
}

// Init containers ran for 30 s of its 100 s before it was ready, at 10: it ends at 80.
TEST(JobRanEarly, CountsForTheTimeLimitOnceTheJobIsReady) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  driver.ready_after.reset();
  JobRequest limited = job(1, 1);
  limited.time_limit = seconds(100);
  driver.step(at(0), Submit{limited});
  driver.run_until(at(10));
  EXPECT_EQ(driver.view(1).time_limit, seconds(100));
  driver.step(at(10), JobRan{JobId{1}, seconds(30)});
  driver.step(at(10), JobReady{JobId{1}});
  driver.run_until(at(20));
  EXPECT_EQ(driver.view(1).run_time, seconds(40));
  driver.run_until(at(79));
  EXPECT_FALSE(timed_out(driver, 1));
  driver.run_until(at(81));
  EXPECT_TRUE(timed_out(driver, 1));
}

// A user suspends a job before it is ready. Suspended time is time since the start, and that is
// when it is ready.
TEST(JobRanEarly, SuspendedTimeCountsFromReadinessOn) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  driver.ready_after.reset();
  driver.step(at(0), Submit{job(1, 1)});
  driver.run_until(at(2));
  driver.step(at(2), UserSuspend{JobId{1}});
  driver.step(at(5), JobReady{JobId{1}});
  driver.run_until(at(9));
  EXPECT_EQ(driver.view(1).suspend_time, seconds(4));
  driver.step(at(9), UserResume{JobId{1}});
  driver.run_until(at(12));
  EXPECT_EQ(driver.view(1).suspend_time, seconds(4));
  EXPECT_EQ(driver.view(1).run_time, seconds(3));
}

// Reports may arrive late: 99 is not known (any longer), and 3 waits.
TEST_F(JobRanTest, IsOfNoMeaningForAJobThatDoesNotRun) {
  ran(99, 10);
  JobRequest held = job(3, 1);
  held.hold = true;
  submit(held);
  ran(3, 10);
  EXPECT_EQ(driver_.view(3).run_time, seconds(0));
}

}  // namespace
}  // namespace sched::testing
