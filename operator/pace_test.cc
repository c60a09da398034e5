#include "operator/pace.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Pace, AShortStepIsFollowedByTheNextAtOnce) {
  EXPECT_EQ(rest_after(microseconds{0}), microseconds{0});
  EXPECT_EQ(rest_after(microseconds{999}), microseconds{0});
}

TEST(Pace, ALongStepTakesAFifthOfTheTime) {
  EXPECT_EQ(rest_after(milliseconds{1}), milliseconds{4});
  EXPECT_EQ(rest_after(milliseconds{5}), milliseconds{20});
}

TEST(Pace, NobodyWaitsLongForTheNextStep) {
  EXPECT_EQ(rest_after(milliseconds{100}), milliseconds{50});
  EXPECT_EQ(rest_after(seconds{10}), milliseconds{50});
}

}  // namespace
}  // namespace control
