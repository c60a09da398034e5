#include "operator/loop/pace.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Pace, AShortStepIsFollowedByTheNextAtOnce) {
  EXPECT_EQ(rest_after(microseconds{0}, false), microseconds{0});
  EXPECT_EQ(rest_after(microseconds{999}, false), microseconds{0});
}

TEST(Pace, ALongStepTakesAFifthOfTheTime) {
  EXPECT_EQ(rest_after(milliseconds{1}, false), milliseconds{4});
  EXPECT_EQ(rest_after(milliseconds{5}, false), milliseconds{20});
}

TEST(Pace, NobodyWaitsLongForTheNextStep) {
  EXPECT_EQ(rest_after(milliseconds{100}, false), milliseconds{50});
  EXPECT_EQ(rest_after(seconds{10}, false), milliseconds{50});
}

TEST(Pace, WhileWritesWaitTheyAreLeftToThemselves) {
  EXPECT_EQ(rest_after(microseconds{10}, true), milliseconds{50});
  EXPECT_EQ(rest_after(seconds{10}, true), milliseconds{50});
}

}  // namespace
}  // namespace control
