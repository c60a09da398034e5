// When a pass is due (3.1), as a word: "now", "at 60", "never". sched_interval is 60 s and
// default_queue_depth 2 unless a test says otherwise; the nodes are a to d.
#include "scheduler/pass/pass_schedule.h"

#include <gtest/gtest.h>

#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

class PassScheduleTest : public ::testing::Test {
 protected:
  PassScheduleTest() {
    configuration_ = PassWorld::one_partition();
    configuration_.cluster.queue.sched_interval = seconds(60);
    configuration_.cluster.queue.default_queue_depth = 2;
  }
  void begin() {
    world_ = std::make_unique<PassWorld>(configuration_);
    schedule_ = std::make_unique<PassSchedule>(world_->cluster, world_->books,
                                               world_->admission.queue(), world_->pass);
  }
  // next_due() as a word; is_due() must say the same.
  std::string due(double now) const {
    const auto next = schedule_->next_due(at(now));
    EXPECT_EQ(schedule_->is_due(at(now)), next == at(now));
    if (!next) return "never";
    if (*next == at(now)) return "now";
    return "at " + std::to_string((*next - at(0)) / seconds(1));
  }
  // Makes the pass that is due, and shows what became of the jobs since the last look.
  std::string run(double now) {
    world_->now = at(now);
    schedule_->run(at(now));
    return world_->look();
  }

  Configuration configuration_;
  std::unique_ptr<PassWorld> world_;
  std::unique_ptr<PassSchedule> schedule_;
};

// Not even at intervals: without waiting jobs there is nothing to wake up for.
TEST_F(PassScheduleTest, AnEmptyQueueNeedsNoPass) {
  begin();
  EXPECT_EQ(due(0), "never");
}

// Job 2 waits for job 1. A change (here the start of job 1) is followed by one more pass at the end
// of the interval; after that nothing is due until something changes again.
TEST_F(PassScheduleTest, APassIsDueAtOnceAfterAChangeAndNotAgain) {
  begin();
  world_->submit(1, 4);
  world_->submit(2, 4);
  EXPECT_EQ(due(0), "now");
  EXPECT_EQ(run(0), "1 runs abcd, 2 Resources");
  EXPECT_EQ(due(0), "at 60");  // the start was a change; nothing else is
  EXPECT_EQ(run(60), "2 Resources");
  EXPECT_EQ(due(60), "never");
  world_->end(1);
  EXPECT_EQ(due(70), "now");
}

// The first pass is a full one; those after events look at the first two records.
TEST_F(PassScheduleTest, AFullPassFollowsForWhatEventPassesLeaveOut) {
  begin();
  world_->submit(1, 1);
  run(0);
  for (int id = 2; id <= 4; ++id) world_->submit(id, 1);
  EXPECT_EQ(due(10), "now");
  // Job 4 was not looked at, so it has no reason yet.
  EXPECT_EQ(run(10), "2 runs b, 3 runs c, 4 None");
  EXPECT_EQ(due(10), "at 60");
  EXPECT_EQ(run(60), "4 runs d");
}

// The same jobs with sched_interval=0: no pass follows at 60.
TEST_F(PassScheduleTest, WithoutAnIntervalOnlyChangesMakeAPassDue) {
  configuration_.cluster.queue.sched_interval = seconds(0);
  begin();
  world_->submit(1, 4);
  world_->submit(2, 4);
  EXPECT_EQ(due(0), "now");
  run(0);
  EXPECT_EQ(due(0), "never");
}

// −1 switches the main pass off.
TEST_F(PassScheduleTest, ANegativeIntervalMakesNoPassDue) {
  configuration_.cluster.queue.sched_interval = seconds(-1);
  begin();
  world_->submit(1, 1);
  EXPECT_EQ(due(0), "never");
}

// 1 failed p and started in q: what waits behind it in p is tried at once.
TEST_F(PassScheduleTest, IsDueAgainAtOnceIfABlockerStartedElsewhere) {
  configuration_.partitions = {PassWorld::closed("p", "ab", 2), PassWorld::closed("q", "cd", 1)};
  begin();
  world_->run(9, "a", "p");
  JobRequest either = job(1, 2);
  either.partitions = {"p", "q"};
  world_->submit(either);
  world_->submit(2, 1, "p");
  EXPECT_EQ(run(0), "1 runs cd, 2 Priority");
  EXPECT_EQ(due(0), "now");
  EXPECT_EQ(run(0), "2 runs b");
}

// An exempt time ends though nothing happens.
TEST_F(PassScheduleTest, IsDueWhenAnAnswerOfTheLastPassEnds) {
  configuration_.partitions = {PassWorld::closed("low", "abcd", 1),
                               PassWorld::closed("high", "abcd", 2)};
  configuration_.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration_.cluster.preempt_mode = PreemptMode::kCancel;
  configuration_.cluster.preempt_exempt_time = seconds(40);
  begin();
  world_->run(9, "abcd", "low");
  world_->submit(1, 1, "high");
  EXPECT_EQ(run(0), "1 Resources");
  EXPECT_EQ(due(0), "at 40");
  EXPECT_EQ(due(39), "at 40");
  // An event that changes nothing may come between 40 and the wake.
  EXPECT_EQ(due(41), "now");
  EXPECT_EQ(run(40), "1 preempts on a");
}

}  // namespace
}  // namespace sched::testing
