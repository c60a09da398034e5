#include "launcher/run_time.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RunTime::Clock::time_point kBegin{seconds{1000}};

TEST(RunTime, CountsStepsAndWhatWasBefore) {
  RunTime time{kBegin, seconds{3}};
  EXPECT_EQ(time.at(kBegin + milliseconds{100}), milliseconds{3100});
  EXPECT_EQ(time.at(kBegin + milliseconds{130}), milliseconds{3130});
}

// Half a minute of another job's turn is at most two own steps.
TEST(RunTime, DoesNotCountTheTimeInWhichItStoodStill) {
  RunTime time{kBegin, {}};
  EXPECT_EQ(time.at(kBegin + seconds{30}), 2 * RunTime::kStep);
  EXPECT_EQ(time.at(kBegin + seconds{30} + milliseconds{100}), 3 * RunTime::kStep);
}

}  // namespace
}  // namespace launcher
