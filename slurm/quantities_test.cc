#include "slurm/quantities.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "base/prng.h"

namespace slurm {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// The six forms of 1.7, the three words for "no limit", and a number of minutes beyond a hundred
// years.
TEST(TimeString, ReadsEachForm) {
  const std::vector<std::pair<std::string, std::optional<base::Duration>>> cases = {
      {"5", minutes{5}},
      {"1:30", minutes{1} + seconds{30}},
      {"2:03:04", hours{2} + minutes{3} + seconds{4}},
      {"2-", hours{48}},
      {"1-2", hours{26}},
      {"1-2:3", hours{26} + minutes{3}},
      {"1-2:3:4", hours{26} + minutes{3} + seconds{4}},
      {"00:00:20", seconds{20}},
      {"-1", std::nullopt},
      {"infinite", std::nullopt},
      {"UNLIMITED", std::nullopt},
      {"3000000000", kUnlimited},  // capped, not overflown
  };
  for (const auto& [text, want] : cases) {
    const auto got = parse_time("--time", text);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*got, want) << text;
  }
}

// Signs (except in -1, which means no limit), blanks, units, and a fourth field are refused. The
// message begins with the option.
TEST(TimeString, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "x", "1:2:3:4", "-", "1--2", "-5", "1:-2", "1h", " 5", "1-2-3"}) {
    const auto got = parse_time("--time", text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().message.find("--time \""), 0U) << got.error().message;
  }
}

// 1.7. Rounded down, a job that asks for half a minute would have no time at all.
TEST(TimeString, LimitsRoundUpToMinutes) {
  EXPECT_EQ(*parse_limit("-t", "0:30"), std::optional<base::Duration>{minutes{1}});
  EXPECT_EQ(*parse_limit("-t", "2"), std::optional<base::Duration>{minutes{2}});
}

// Goal: what format_run_time writes with hours is read back. Method: random durations. Up to 20
// days, so that all forms with and without days occur. M:SS alone is read back as minutes and
// seconds.
TEST(TimeString, ReadsBackWhatItPrints) {
  base::Prng prng{5};
  for (int round = 0; round < 1'000; ++round) {
    const base::Duration duration = seconds{prng.below(86'400 * 20)};
    const std::string text = format_run_time(duration);
    EXPECT_EQ(*parse_time("t", text), std::optional<base::Duration>{duration}) << text;
  }
}

// 98 s are 1 min 38 s. The leading field has as many digits as it needs, all others two. Scripts
// that parse squeue's columns must go on to work.
TEST(RunTime, PrintsAsSqueueDoes) {
  EXPECT_EQ(format_run_time(seconds{0}), "0:00");
  EXPECT_EQ(format_run_time(seconds{98}), "1:38");
  EXPECT_EQ(format_run_time(hours{1} + seconds{5}), "1:00:05");
  EXPECT_EQ(format_run_time(hours{25} + minutes{2}), "1-01:02:00");
  EXPECT_EQ(format_limit(std::nullopt), "UNLIMITED");
}

// The clock stands at noon, local time, two hours ahead of UTC. A time of day that is past means
// tomorrow; dates are local, too. At the end, what must not be taken for an instant: a unit that
// does not exist, an hour 25, a month 13, and a blank in place of the T.
TEST(InstantString, ReadsEachForm) {
  // 1970-01-03 10:00 UTC, in a zone two hours east.
  const base::Instant now{hours{58}};
  const Now here{.instant = now, .zone = hours{2}};
  const std::vector<std::pair<std::string, base::Instant>> cases = {
      {"now", now},
      {"now+10", now + seconds{10}},
      {"now+2hours", now + hours{2}},
      {"now+1week", now + hours{168}},
      // Local time is noon, two hours ahead of UTC.
      {"13:00", now + hours{1}},                 // 11:00 UTC, still ahead
      {"11:30", now + hours{23} + minutes{30}},  // passed today
      {"midnight", now + hours{12}},
      {"tomorrow", now + hours{12}},
      {"1970-01-04", base::Instant{hours{70}}},
      {"1970-01-04T02:30", base::Instant{hours{72} + minutes{30}}},
      {"1970-01-04-2:30AM", base::Instant{hours{72} + minutes{30}}},
      // The clock of twelve hours, and Slurm's words.
      {"1:00PM", now + hours{1}},
      {"01:00:30pm", now + hours{1} + seconds{30}},
      {"12:30PM", now + minutes{30}},
      {"12:30AM", now + hours{12} + minutes{30}},
      {"0:30AM", now + hours{12} + minutes{30}},
      {"11:30AM", now + hours{23} + minutes{30}},
      {"fika", now + hours{3}},
      {"teatime", now + hours{4}},
      // Into the past: the job is eligible at once.
      {"now-1hour", now - hours{1}},
      {"now-60", now - seconds{60}},
      // The third of January has begun, and the next second of January is a year away.
      {"1/4", base::Instant{hours{70}}},
      {"0104", base::Instant{hours{70}}},
      {"010400T2:30", base::Instant{hours{(30 * 365 + 7 + 3) * 24} + minutes{30}}},
      {"01/04-02:30", base::Instant{hours{72} + minutes{30}}},
      {"1/3-1:00PM", now + hours{1}},
      {"1/3-11:00", now + hours{365 * 24 - 1}},
      {"1/2", base::Instant{hours{(365 + 1) * 24 - 2}}},
      {"1/4/00T2:30", base::Instant{hours{(30 * 365 + 7 + 3) * 24} + minutes{30}}},
  };
  for (const auto& [text, want] : cases) {
    const auto got = parse_instant("--begin", text, here);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*got, want) << text;
  }
  for (const char* text : {"",
                           "now+",
                           "now-",
                           "now+1fortnight",
                           "25:00",
                           "13:00PM",
                           "4PM",
                           "4:00P",
                           "PM",
                           "1970-13-01",
                           "1970-01-01 10:00",
                           "1970-01-01T",
                           "elevenses",
                           "2/30",
                           "13/1",
                           "1/2/1970",
                           "1/2/3/4",
                           "/",
                           "1/-2",
                           "1/2-",
                           "4:00PM tomorrow"}) {
    EXPECT_FALSE(parse_instant("--begin", text, here).ok()) << text;
  }
}

// 1025 KiB are one KiB more than a MiB, and round up to 2. A B may stand behind the unit and means
// nothing. At the end, what is not a size: no number, a sign, a fraction, an unknown unit, and more
// than an exbibyte.
TEST(MemorySize, ReadsUnitsAndRoundsUp) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"0", 0},       {"100", 100},      {"100M", 100},     {"1025K", 2},
      {"2g", 2'048},  {"1T", 1'048'576}, {"500MB", 500},    {"4GB", 4'096},
      {"4Gb", 4'096}, {"1025kB", 2},     {"2tb", 2'097'152}};
  for (const auto& [text, want] : cases) {
    const auto got = parse_memory("--mem", text);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->value(), want) << text;
  }
  for (const char* text :
       {"", "G", "GB", "-1", "1.5G", "1P", "1PB", "4B", "4GiB", "4GBB", "99999999999T"}) {
    EXPECT_FALSE(parse_memory("--mem", text).ok()) << text;
  }
}

}  // namespace
}  // namespace slurm
