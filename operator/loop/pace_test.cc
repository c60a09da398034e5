#include "operator/loop/pace.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A rest after each step would delay a cluster that has little to do by more than the work takes.
TEST(Pace, AShortStepIsFollowedByTheNextAtOnce) {
  EXPECT_EQ(rest_after(microseconds{0}, false), microseconds{0});
  EXPECT_EQ(rest_after(microseconds{999}, false), microseconds{0});
}

// 1 ms of work, 4 ms of rest: changes that come meanwhile are handled together in the next step.
TEST(Pace, ALongStepTakesAFifthOfTheTime) {
  EXPECT_EQ(rest_after(milliseconds{1}, false), milliseconds{4});
  EXPECT_EQ(rest_after(milliseconds{5}, false), milliseconds{20});
}

// A fifth of the time would be a rest of 40 s after a step of 10 s.
TEST(Pace, NobodyWaitsLongForTheNextStep) {
  EXPECT_EQ(rest_after(milliseconds{100}, false), milliseconds{50});
  EXPECT_EQ(rest_after(seconds{10}, false), milliseconds{50});
}

// A step can hand over no more writes then, so it would only compete with them for the processor.
TEST(Pace, WhileWritesWaitTheyAreLeftToThemselves) {
  EXPECT_EQ(rest_after(microseconds{10}, true), milliseconds{50});
  EXPECT_EQ(rest_after(seconds{10}, true), milliseconds{50});
}

}  // namespace
}  // namespace control
