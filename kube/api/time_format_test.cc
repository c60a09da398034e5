#include "kube/api/time_format.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// 2026-01-01T00:00:30Z; `date -u -d 2026-01-01T00:00:30Z +%s`.
constexpr base::Instant kInstant = base::instant_from_micros(1'767'225'630'000'000);

// Fractions of any length, offsets in both directions, instants before the epoch, and a leap day.
TEST(ParseInstant, ReadsEachSpelling) {
  const struct {
    const char* text;
    base::Instant want;
  } cases[] = {
      {"2026-01-01T00:00:30Z", kInstant},
      {"2026-01-01T00:00:30.000000Z", kInstant},
      {"2026-01-01T00:00:30.5Z", kInstant + milliseconds{500}},
      {"2026-01-01T00:00:30.123456789Z", kInstant + microseconds{123456}},
      {"2026-01-01T01:00:30+01:00", kInstant},
      {"2025-12-31T22:30:30-01:30", kInstant},
      {"1970-01-01T00:00:00Z", base::Instant{}},
      {"1969-12-31T23:59:59.999999Z", base::instant_from_micros(-1)},
      {"2024-02-29T00:00:00Z", base::instant_from_micros(1'709'164'800'000'000)},
  };
  for (const auto& one : cases) {
    const auto got = parse_instant(one.text);
    ASSERT_TRUE(got.ok()) << one.text;
    EXPECT_EQ(*got, one.want) << one.text;
  }
}

// An offset or a leap second would lead to the year 10000, or before the year 0: neither can be
// written.
TEST(ParseInstant, StaysWithinFourDigitsOfAYear) {
  const auto last = *parse_instant("9999-12-31T23:59:59.999999Z");
  for (const char* text : {"9999-12-31T23:59:60Z", "9999-12-31T23:00:00-01:00"}) {
    EXPECT_EQ(*parse_instant(text), last) << text;
  }
  EXPECT_EQ(*parse_instant("0000-01-01T00:59:59+01:00"), *parse_instant("0000-01-01T00:00:00Z"));
}

// 2025 has no February 29, and more digits than nanoseconds are not written by any Kubernetes
// program.
TEST(ParseInstant, RefusesWithTheText) {
  for (const char* text :
       {"", "now", "2026-01-01", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "2026-01-01T00:00:00.1234567890Z"}) {
    const auto got = parse_instant(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().code, base::Code::kInvalidArgument);
    EXPECT_NE(got.error().message.find("\"" + std::string{text} + "\""), std::string::npos);
  }
}

// A division that rounds toward zero would give 1970 for the second case.
TEST(FormatTime, RoundsDownToSecondsAlsoBeforeTheEpoch) {
  EXPECT_EQ(format_time(kInstant + microseconds{999'999}), "2026-01-01T00:00:30Z");
  EXPECT_EQ(format_time(base::instant_from_micros(-1)), "1969-12-31T23:59:59Z");
}

// The epoch, the microsecond before it, today, and the last microsecond of the year 2099.
TEST(FormatMicroTime, ComesBackAsItWas) {
  for (const std::int64_t micros : {0LL, -1LL, 1'767'225'630'000'001LL, 4'102'444'799'999'999LL}) {
    const base::Instant t = base::instant_from_micros(micros);
    EXPECT_EQ(*parse_instant(format_micro_time(t)), t);
  }
  EXPECT_EQ(format_micro_time(kInstant), "2026-01-01T00:00:30.000000Z");
}

// Both characters for micro (U+00B5, U+03BC) are Go's; 0.3 has no exact binary value and must still
// be 300 ms.
TEST(ParseDuration, ReadsGoSpellings) {
  constexpr microseconds kLongest{9'223'372'036'854'775};
  const struct {
    const char* text;
    base::Duration want;
  } cases[] = {
      {"0", seconds{0}},
      {"0s", seconds{0}},
      {"30s", seconds{30}},
      {"1h30m", minutes{90}},
      {"1h30m0s", minutes{90}},
      {"100ms", milliseconds{100}},
      {"1.5s", milliseconds{1500}},
      {".5h", minutes{30}},
      {"-2m", minutes{-2}},
      {"250us", microseconds{250}},
      {"250\u00b5s", microseconds{250}},
      {"1500ns", microseconds{1}},
      {"0.3s", milliseconds{300}},
      {"168h", hours{168}},
      {"1.000001s", microseconds{1'000'001}},
      {"0000000000000000000000000000001h", hours{1}},  // 32 characters
      // 2^63 - 1 ns, where Go's durations end.
      {"2562047h47m16.854775807s", kLongest},
      {"2562047h47m16.854775808s", kLongest},
      {"9999999999999h", kLongest},
      {"9999999999999999999999999999999h", kLongest},
      {"-9999999h", -kLongest},
  };
  for (const auto& one : cases) {
    const auto got = parse_duration(one.text);
    ASSERT_TRUE(got.ok()) << one.text;
    EXPECT_EQ(*got, one.want) << one.text;
    EXPECT_EQ(*parse_duration(format_duration(*got)), *got) << one.text;
  }
}

// Go has no unit for days: their length is not constant.
TEST(ParseDuration, RefusesWithTheText) {
  for (const char* text : {"", "30", "s", "1d", "1h30", "1.2.3s", "--1s", "1 s", ".s", "1e3s"}) {
    const auto got = parse_duration(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_NE(got.error().message.find("\"" + std::string{text} + "\""), std::string::npos);
  }
}

// The unit of the rest follows its size, as in Go: 2.5s, 1.5ms, 7us. A rest below a second stands
// behind the hours without a zero for the minutes ("1h1ms").
TEST(FormatDuration, IsShortAndComesBackAsItWas) {
  const struct {
    base::Duration duration;
    const char* want;
  } cases[] = {
      {seconds{0}, "0s"},
      {seconds{30}, "30s"},
      {minutes{90}, "1h30m"},
      {milliseconds{2500}, "2.5s"},
      {milliseconds{100}, "100ms"},
      {microseconds{1'500}, "1.5ms"},
      {microseconds{7}, "7us"},
      {-minutes{2}, "-2m"},
      {hours{24}, "24h"},
      {hours{1} + milliseconds{1}, "1h1ms"},
      {microseconds{1'000'001}, "1.000001s"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(format_duration(one.duration), one.want);
    EXPECT_EQ(*parse_duration(one.want), one.duration) << one.want;
  }
}

}  // namespace
}  // namespace kube
