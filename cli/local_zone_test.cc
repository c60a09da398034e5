#include "cli/local_zone.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "kube/api/time_format.h"

namespace cli {
namespace {

// Central European time: an hour east of UTC, two from the last Sunday of March to that of October.
class LocalZone : public testing::Test {
 protected:
  LocalZone() {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~LocalZone() override {
    unsetenv("TZ");
    tzset();
  }
  static std::string begin(const std::string& text, const std::string& now) {
    const auto instant =
        slurm::parse_instant("--begin", text, local_time(kube::parse_instant(now).value()));
    return instant.ok() ? kube::format_time(*instant) : instant.error().message;
  }
};

// Goal: "--begin" means what the wall clock of the user will show then. A fixed offset, that of
// today, would start jobs an hour early or late for half of the year.
TEST_F(LocalZone, ADateOnTheOtherSideOfTheChangeHasItsOwnOffset) {
  EXPECT_EQ(begin("2026-12-01T08:00", "2026-07-01T10:00:00Z"), "2026-12-01T07:00:00Z");
  EXPECT_EQ(begin("2026-07-01T08:00", "2026-12-01T10:00:00Z"), "2026-07-01T06:00:00Z");
  EXPECT_EQ(begin("2026-12-01", "2026-07-01T10:00:00Z"), "2026-11-30T23:00:00Z");
}

// The clocks are put back in the night to 2026-10-25.
TEST_F(LocalZone, TomorrowMayBeTheDayOfTheChange) {
  EXPECT_EQ(begin("08:00", "2026-10-24T12:00:00Z"), "2026-10-25T07:00:00Z");
  EXPECT_EQ(begin("15:00", "2026-10-24T12:00:00Z"), "2026-10-24T13:00:00Z");
  EXPECT_EQ(begin("tomorrow", "2026-10-25T12:00:00Z"), "2026-10-25T23:00:00Z");
  EXPECT_EQ(begin("today", "2026-10-25T12:00:00Z"), "2026-10-24T22:00:00Z");
}

// A command that looks back means today's, be it over or yet to come. SOURCE: recorded, of sacct.
TEST_F(LocalZone, ATimeOfTheDayIsTodaysForWhatLooksBack) {
  const auto past = [](const std::string& text, const std::string& now) {
    const auto instant =
        past_instant("--starttime", text, local_time(kube::parse_instant(now).value()));
    return instant.ok() ? kube::format_time(*instant) : instant.error().message;
  };
  EXPECT_EQ(past("00:00", "2026-11-29T23:30:00Z"), "2026-11-29T23:00:00Z");
  EXPECT_EQ(past("08:00", "2026-11-30T12:00:00Z"), "2026-11-30T07:00:00Z");
  EXPECT_EQ(past("15:00", "2026-11-30T12:00:00Z"), "2026-11-30T14:00:00Z");
  EXPECT_EQ(past("00:00", "2026-10-25T12:00:00Z"), "2026-10-24T22:00:00Z") << "the clocks changed";
  EXPECT_EQ(past("2026-11-01T08:00", "2026-11-30T12:00:00Z"), "2026-11-01T07:00:00Z");
  EXPECT_EQ(past("now-1hours", "2026-11-30T12:00:00Z"), "2026-11-30T11:00:00Z");
}

}  // namespace
}  // namespace cli
