// TimeLimits: when a job reaches its limit, as its run time grows with its turns. One job of
// partition p; times in seconds.
#include "scheduler/limits/time_limits.h"

#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/replay/told_turns.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class TimeLimitsTest : public ::testing::Test, public gang::TurnEvents {
 protected:
  TimeLimitsTest() {
    EXPECT_TRUE(cluster_.upsert_node(node("n1")).ok());
    configure();
    books_.reshape();
  }
  void configure() {
    c_.partitions = {partition("p", {node("n1")})};
    cluster_.configure(c_);
    cluster_.settle();
  }
  // It runs since the instant 0.
  Job& running(std::optional<base::Duration> limit) {
    turns_->go_to(at(0), false);
    Job& made = books_.add(JobFacts::of(job(1, 1, "p")));
    Allocation allocation;
    allocation.nodes.push_back({.node = cluster_.find_node("n1").value()});
    books_.begin(made, p(), std::move(allocation), {}, at(0));
    books_.set_ready(made, at(0));
    made.clock = {.phase = JobClock::Phase::kRunning, .as_of = at(0)};
    made.time_limit = limit;
    limits_.arm(made, at(0));
    return made;
  }
  PartitionIndex p() const { return cluster_.find_partition("p").value(); }
  // Returns how many jobs reach their limits by then.
  int fire(double t) {
    int reached = 0;
    turns_->go_to(at(t), false);
    limits_.fire(at(t), [&](Job&, EndingVerdict) { ++reached; });
    return reached;
  }
  // The job's turn begins or ends at t, as the gang would tell its clock.
  void to(Job& job, JobClock::Phase phase, double t) {
    turns_->go_to(at(t), false);
    job.clock.to(phase, at(t));
  }

  // Calls of the turns to an engine are ignored here.
  void must_end(Job&, std::optional<JobId>) override {}
  void times_changed(Job&) override {}
  void resumed(Job&) override {}

  Configuration c_ = gang_linear({});
  Cluster cluster_;
  JobBooks books_{cluster_};
  std::unique_ptr<gang::Turns> turns_ = std::make_unique<gang::ToldTurns>(cluster_, books_, *this);
  TimeLimits limits_{cluster_, books_, *turns_};
};

TEST_F(TimeLimitsTest, AJobWithoutALimitHasNoTimer) {
  running(std::nullopt);
  EXPECT_EQ(limits_.next_due(), std::nullopt);
}

// R13.20: it was suspended for 70 of 130 seconds.
TEST_F(TimeLimitsTest, OnlyRunTimeCounts) {
  Job& job = running(seconds(60));
  EXPECT_EQ(limits_.next_due(), at(60));
  to(job, JobClock::Phase::kSuspended, 30);
  EXPECT_EQ(fire(60), 0);  // the timer was a lower bound, and is set again
  to(job, JobClock::Phase::kRunning, 100);
  limits_.arm(job, at(100));
  EXPECT_EQ(limits_.next_due(), at(130));
  EXPECT_EQ(fire(129), 0);
  EXPECT_EQ(fire(130), 1);
  EXPECT_EQ(limits_.next_due(), std::nullopt);
}

// R13.21: the job is ended at its limit plus OverTimeLimit.
TEST_F(TimeLimitsTest, OverTimeLimitIsAdded) {
  c_.cluster.over_time_limit = seconds(20);
  configure();
  running(seconds(60));
  EXPECT_EQ(limits_.next_due(), at(80));
}

// 13.3: a limit is cut to what is left until the deadline.
TEST_F(TimeLimitsTest, ADeadlineCutsTheLimit) {
  Job& job = running(std::nullopt);
  job.change_request([](JobRequest& request) { request.time_limit = seconds(60); });
  EXPECT_EQ(limits_.limit_of(job, p(), at(0)), seconds(60));
  job.change_request([](JobRequest& request) { request.deadline = at(50); });
  EXPECT_EQ(limits_.limit_of(job, p(), at(0)), seconds(50));
}

// It ran while its node did not slice: that may bring it over its limit at once.
TEST_F(TimeLimitsTest, AJobThatRanLongerThanItWasToldIsLookedAtAtOnce) {
  Job& job = running(seconds(60));
  turns_->go_to(at(10), false);
  job.clock.run += seconds(100);
  limits_.check_at_once(job, at(10));
  EXPECT_EQ(limits_.next_due(), at(10));
  EXPECT_EQ(fire(10), 1);
}

// The end is decided, and the grace time has a timer of its own.
TEST_F(TimeLimitsTest, AJobThatIsEndingHasNoTimer) {
  Job& job = running(seconds(60));
  books_.set_ending(job, Ending{.grace_end = at(5), .preemptor = {}});
  limits_.arm(job, at(1));
  EXPECT_EQ(limits_.next_due(), std::nullopt);
}

}  // namespace
}  // namespace sched::testing
