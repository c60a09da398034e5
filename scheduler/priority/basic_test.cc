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

TEST(BasicPriorities, NoJobGetsZeroWhichMeansHeld) {
  BasicPriorities priorities;
  priorities.restore({}, Priority{1});
  EXPECT_EQ(priorities.next({}), Priority{1});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{5}, 0, 10), Priority{1});
}

TEST(BasicPriorities, ALaterJobGetsLessThanAnyThatWasRestored) {
  BasicPriorities priorities;
  priorities.restore({}, Priority{500});
  priorities.restore({}, Priority{900});
  JobRequest given;
  given.priority = Priority{3};
  priorities.restore(given, Priority{3});  // its own wish; it says nothing about later jobs
  EXPECT_EQ(priorities.next({}), Priority{499});
}

TEST(BasicPriorities, AChangeOfNiceMovesThePriorityByTheDifference) {
  EXPECT_EQ(BasicPriorities::with_nice(Priority{100}, 10, 0), Priority{110});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{100}, 0, 30), Priority{70});
  EXPECT_EQ(BasicPriorities::with_nice(Priority{0}, 0, -30), Priority{0});  // held stays held
}

}  // namespace
}  // namespace sched
