#include "kube/api/time_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "base/utc.h"

namespace kube {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Exactly `count` digits at the front of text, which is shortened by them.
std::optional<unsigned> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + static_cast<unsigned>(text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

// Takes one character off the front, if it is that one.
// So the readers below consist of what they expect, in its order.
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Takes "12:30:00.5" from the front. A fraction is optional; at most nine digits, which are
// nanoseconds. base::Duration counts microseconds: digits beyond the sixth are read and dropped.
std::optional<base::Duration> take_time_of_day(std::string_view& rest) {
  const auto hour = take_digits(rest, 2);
  if (!hour || *hour > 23 || !take(rest, ':')) return std::nullopt;
  const auto minute = take_digits(rest, 2);
  if (!minute || *minute > 59 || !take(rest, ':')) return std::nullopt;
  const auto second = take_digits(rest, 2);
  // RFC 3339 has leap seconds; the sixtieth second becomes the first one of the next minute.
  if (!second || *second > 60) return std::nullopt;
  base::Duration result = hours{*hour} + minutes{*minute} + seconds{*second};
  if (!take(rest, '.')) return result;
  unsigned micros = 0;
  std::size_t digits = 0;
  for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), ++digits) {
    // Go writes nanoseconds; what is below a microsecond is dropped.
    if (digits < 6) micros = micros * 10 + static_cast<unsigned>(rest[0] - '0');
  }
  if (digits == 0 || digits > 9) return std::nullopt;
  // ".5" is 500,000 microseconds: what was not written is 0.
  for (; digits < 6; ++digits) micros *= 10;
  return result + base::Duration{micros};
}

// Reads "Z" or "+01:00" at the end: by how much the local time is ahead of UTC.
std::optional<base::Duration> take_offset(std::string_view& rest) {
  if (take(rest, 'Z') || take(rest, 'z')) return base::Duration{0};
  const bool west = rest.starts_with('-');
  if (!take(rest, west ? '-' : '+')) return std::nullopt;
  const auto hour = take_digits(rest, 2);
  if (!hour || *hour > 23 || !take(rest, ':')) return std::nullopt;
  const auto minute = take_digits(rest, 2);
  if (!minute || *minute > 59) return std::nullopt;
  const base::Duration offset = hours{*hour} + minutes{*minute};
  return west ? -offset : offset;
}

// RFC 3339, as Go's time.Time writes it. By hand, because g++ 12 has no std::chrono::parse.
// Strict: a fixed number of digits everywhere, so that a date such as 2026-1-31 is an error and not
// a guess. The day must exist in its month.
std::optional<base::Instant> read_instant(std::string_view rest) {
  const auto year = take_digits(rest, 4);
  if (!year || !take(rest, '-')) return std::nullopt;
  const auto month = take_digits(rest, 2);
  if (!month || !take(rest, '-')) return std::nullopt;
  const auto day = take_digits(rest, 2);
  if (!day || (!take(rest, 'T') && !take(rest, 't'))) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{*month}, std::chrono::day{*day}};
  if (!date.ok()) return std::nullopt;
  const auto time_of_day = take_time_of_day(rest);
  if (!time_of_day) return std::nullopt;
  const auto offset = take_offset(rest);
  if (!offset || !rest.empty()) return std::nullopt;
  // Local time minus how far it is ahead gives UTC. An offset, or a leap second, can lead out of
  // the years that have four digits, and what is read must be what can be written: the first or the
  // last instant of these years is read instead.
  const base::Instant at = base::Instant{std::chrono::sys_days{date}} + *time_of_day - *offset;
  constexpr base::Instant kFirst{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
  constexpr base::Instant kEnd{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};
  return std::clamp(at, kFirst, kEnd - base::Duration{1});
}

// Nanoseconds of one unit; Go knows both spellings of micro.
constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kUnits{{
    {"ns", 1},
    {"us", 1'000},
    // The micro sign and the Greek letter look alike and are two characters.
    {"\u00b5s", 1'000},
    {"\u03bcs", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};

// The whole word must match, or "m" would be found in "ms".
std::optional<std::int64_t> unit_nanos(std::string_view name) {
  for (const auto& [unit, nanos] : kUnits) {
    if (unit == name) return nanos;
  }
  return std::nullopt;
}

// Reads one "1.5h" at the front, in nanoseconds. A long double has 64 bits of mantissa or more, so
// all nanoseconds of a duration stay exact. The bound keeps its parser from long inputs; the CRDs
// take durations of 32 characters.
std::optional<long double> take_term(std::string_view& rest) {
  constexpr std::size_t kNumberCharactersMax = 32;
  // Only digits and points belong to the number; "1e3s" or "0x1s" is not a duration in Go either.
  const std::size_t number_end = rest.find_first_not_of("0123456789.");
  if (number_end == 0 || number_end == std::string_view::npos ||
      number_end > kNumberCharactersMax) {
    return std::nullopt;
  }
  const std::string_view number = rest.substr(0, number_end);
  if (number.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  long double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  rest.remove_prefix(number_end);
  const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789."));
  const auto nanos = unit_nanos(unit);
  if (!nanos) return std::nullopt;
  rest.remove_prefix(unit.size());
  return value * static_cast<long double>(*nanos);
}

// Reads one sign before all terms, then terms of any unit in any order, which add up. "0" alone
// needs no unit, as in Go. nullopt if anything is left over. Values below a microsecond are rounded
// to the nearest one.
std::optional<base::Duration> read_duration(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return base::Duration{0};
  // A sign alone says nothing.
  if (rest.empty()) return std::nullopt;
  long double nanos = 0;
  while (!rest.empty()) {
    const auto term = take_term(rest);
    if (!term) return std::nullopt;
    nanos += *term;
  }
  // Go's durations end at 2^63 ns, about 292 years, and so do these: a longer one makes no
  // difference to any job or program, and an object that has one must be readable.
  nanos = std::min(nanos, static_cast<long double>(std::numeric_limits<std::int64_t>::max()));
  // Half a nanosecond up: "0.3s" is not exact in binary.
  const auto micros = static_cast<std::int64_t>((nanos + 0.5L) / 1000.0L);
  return base::Duration{negative ? -micros : micros};
}

}  // namespace

// The message shows the text and an example, since users write such times into a Job's spec.
base::Result<base::Instant> parse_instant(std::string_view text) {
  if (const auto t = read_instant(text)) return *t;
  return base::invalid_argument("invalid RFC 3339 time \"" + std::string{text} +
                                "\" (example: 2026-01-31T12:00:00Z)");
}

// Rounded down: an instant that is shown must not lie in the future of the one that was meant.
std::string format_time(base::Instant t) {
  return base::format_utc(std::chrono::floor<seconds>(t));
}

// Writes all six digits, as metav1.MicroTime does.
std::string format_micro_time(base::Instant t) {
  const auto second = std::chrono::floor<seconds>(t);
  std::array<char, 32> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%06lldZ",
                static_cast<long long>((t - second).count()));
  std::string text = base::format_utc(second);
  text.replace(text.size() - 1, 1, fraction.data());
  return text;
}

base::Result<base::Duration> parse_duration(std::string_view text) {
  if (const auto d = read_duration(text)) return *d;
  return base::invalid_argument("invalid duration \"" + std::string{text} +
                                "\" (examples: 30s, 1h30m, 100ms)");
}

// Hours and minutes are whole numbers and left out if they are 0. The rest below a minute is one
// number with the largest unit that keeps a digit before the point.
// Reading the result gives the same duration, and equal durations give equal texts, so statuses can
// be compared as text.
std::string format_duration(base::Duration d) {
  if (d.count() == 0) return "0s";
  std::string text;
  std::int64_t micros = d.count();
  if (micros < 0) {
    // One sign for the whole, as read_duration() takes it.
    text = "-";
    micros = -micros;
  }
  const auto whole = [&](std::int64_t unit_micros, std::string_view unit) {
    if (micros < unit_micros) return;
    text += std::to_string(micros / unit_micros);
    text += unit;
    micros %= unit_micros;
  };
  whole(3'600'000'000, "h");
  whole(60'000'000, "m");
  if (micros == 0) return text;
  // `digits`: how many a whole unit has of microseconds. Zeros at the end of the fraction are left
  // out.
  const auto decimal = [&](std::int64_t unit_micros, int digits, std::string_view unit) {
    text += std::to_string(micros / unit_micros);
    if (std::int64_t rest = micros % unit_micros; rest != 0) {
      std::string fraction = std::to_string(rest);
      fraction.insert(0, static_cast<std::size_t>(digits) - fraction.size(), '0');
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += "." + fraction;
    }
    text += unit;
  };
  if (micros >= 1'000'000) {
    decimal(1'000'000, 6, "s");
  } else if (micros >= 1'000) {
    decimal(1'000, 3, "ms");
  } else {
    decimal(1, 0, "us");
  }
  return text;
}

}  // namespace kube
