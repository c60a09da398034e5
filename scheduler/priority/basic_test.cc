// priority/basic (R9.2): each job one less than the one before it, which is FIFO with room for
// nice.
#include "scheduler/priority/basic.h"

#include <gtest/gtest.h>

namespace sched {
namespace {

TEST(BasicPriorities, EachJobGetsOneLessThanTheJobBefore) {
  BasicPriorities priorities;
  const Priority first = priorities.next({});
  EXPECT_EQ(priorities.next({}).value(), first.value() - 1);
  EXPECT_EQ(priorities.next({}).value(), first.value() - 2);
}

// A nice job of 100 must not push all later jobs behind it by 100, and a priority given by hand
// must not become the new bottom.
TEST(BasicPriorities, NiceAndAGivenPriorityCountForTheirOwnJobAlone) {
  BasicPriorities priorities;
  const Priority first = priorities.next({});
  JobRequest nice;
  nice.nice = 100;
  EXPECT_EQ(priorities.next(nice).value(), first.value() - 1 - 100);
  JobRequest given;
  given.priority = Priority{7};
  EXPECT_EQ(priorities.next(given), Priority{7});
  EXPECT_EQ(priorities.next({}).value(), first.value() - 2);
}

// R9.1: 0 means held. A counter that has come to its bottom, and a large nice value, end at 1.
TEST(BasicPriorities, NoJobGetsZeroWhichMeansHeld) {
  BasicPriorities priorities;
  priorities.restore({}, Priority{1});
  EXPECT_EQ(priorities.next({}), Priority{1});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{5}, 0, 10), Priority{1});
}

// After a change of leader, with the priorities of the jobs that wait.
TEST(BasicPriorities, ALaterJobGetsLessThanAnyThatWasRestored) {
  BasicPriorities priorities;
  priorities.restore({}, Priority{500});
  priorities.restore({}, Priority{900});
  JobRequest given;
  given.priority = Priority{3};
  priorities.restore(given, Priority{3});  // its own wish; it says nothing about later jobs
  EXPECT_EQ(priorities.next({}), Priority{499});
}

// A nice value affects only its own job, and no later one under any leader. That of the second job
// is cut off at the top of the range, so that its number is not known.
TEST(BasicPriorities, NiceSaysNothingOfLaterJobsToANewLeader) {
  JobRequest nice;
  nice.nice = 1000;
  JobRequest eager;
  eager.nice = -2'000'000;
  BasicPriorities before;
  BasicPriorities after;
  after.restore(nice, before.next(nice));
  after.restore(eager, before.next(eager));
  const Priority plain = before.next({});
  after.restore({}, plain);
  EXPECT_EQ(after.next({}), before.next({}));
}

TEST(BasicPriorities, AChangeOfNiceMovesThePriorityByTheDifference) {
  EXPECT_EQ(BasicPriorities::with_nice(Priority{100}, 10, 0), Priority{110});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{100}, 0, 30), Priority{70});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{0}, 0, -30), Priority{0});  // held stays held
}

}  // namespace
}  // namespace sched
