#include "slurm/quantities.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <vector>

#include "slurm/text.h"

namespace slurm {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// The greatest count that is read. A hundred years in seconds is about 3.2 × 10^9: in microseconds
// that is 3.2 × 10^15, so sums of several still fit the 64 bits of a Duration.
constexpr std::int64_t kFieldMax = 100LL * 365 * 24 * 60 * 60;  // seconds of kUnlimited

// Reads a count without a sign and without a unit. Bounded, so that multiplying it by a unit of up
// to a day is checked easily (read_time, read_offset).
std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || text.front() == '-' || error != std::errc{} || stopped != end ||
      value > kFieldMax) {
    return std::nullopt;
  }
  return value;
}

// Returns the numbers of "1:30:00"; nullopt if a part is not a number.
std::optional<std::vector<std::int64_t>> colon_numbers(std::string_view text) {
  std::vector<std::int64_t> fields;
  for (const std::string& part : split(text, ':')) {
    const std::optional<std::int64_t> value = number(part);
    if (!value) return std::nullopt;
    fields.push_back(*value);
  }
  if (fields.empty() || fields.size() > 3) return std::nullopt;
  return fields;
}

// 1.7: D-H[:M[:S]], or H:M:S, M:S, M. Fields may be larger than their places allow ("90:00" are 90
// minutes), as in Slurm. A sum beyond kUnlimited is cut to it instead of overflowing.
std::optional<base::Duration> read_time(std::string_view text) {
  std::int64_t day_count = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const std::optional<std::int64_t> read = number(text.substr(0, dash));
    if (!read) return std::nullopt;
    // 1. The days, if there is a dash.
    day_count = *read;
    text.remove_prefix(dash + 1);
    // "2-": SOURCE: recorded.
    if (text.empty())
      return std::min(base::Duration{days{std::min(day_count, kFieldMax / 86'400)}}, kUnlimited);
  }
  const std::optional<std::vector<std::int64_t>> fields = colon_numbers(text);
  if (!fields) return std::nullopt;
  // 2. Hours, minutes and seconds, put to their places from the left.
  std::array<std::int64_t, 3> hms{};  // hours, minutes, seconds
  // The numbers begin with hours after days; without days, one or two numbers begin with minutes.
  const std::size_t first = dash == std::string_view::npos && fields->size() < 3 ? 1 : 0;
  for (std::size_t i = 0; i < fields->size(); ++i) hms[first + i] = (*fields)[i];
  // 3. Each field is compared before it is multiplied, so that neither a product nor the sum
  //    overflows.
  const auto far = [](std::int64_t count, std::int64_t unit) { return count > kFieldMax / unit; };
  if (far(day_count, 86'400) || far(hms[0], 3'600) || far(hms[1], 60)) return kUnlimited;
  const base::Duration sum = days{day_count} + hours{hms[0]} + minutes{hms[1]} + seconds{hms[2]};
  return std::min(sum, kUnlimited);
}

// The spellings of "no limit" (1.7). 0 is not among them: it means "no limit" to sbatch alone,
// which looks for it (sbatch.cc).
bool is_unlimited(std::string_view text) {
  return text == "-1" || same_word(text, "infinite") || same_word(text, "unlimited");
}

// Reads "10", "10minutes": the count with its unit. Without a unit these are seconds, as sbatch(1)
// has it for --begin. An offset beyond kUnlimited is cut to it, since adding a larger one to an
// instant would overflow.
std::optional<base::Duration> read_offset(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::optional<std::int64_t> count = number(text.substr(0, digits));
  if (!count) return std::nullopt;
  struct Unit {
    std::string_view singular, plural;
    std::int64_t seconds_count;
  };
  constexpr std::array<Unit, 5> kUnits = {{{"second", "seconds", 1},
                                           {"minute", "minutes", 60},
                                           {"hour", "hours", 3'600},
                                           {"day", "days", 86'400},
                                           {"week", "weeks", 604'800}}};
  const std::string_view name = text.substr(digits);
  for (const Unit& unit : kUnits) {
    if (!same_word(name, unit.singular) && !same_word(name, unit.plural) &&
        !(name.empty() && unit.seconds_count == 1)) {
      continue;
    }
    if (*count > kFieldMax / unit.seconds_count) return kUnlimited;
    return seconds{*count * unit.seconds_count};
  }
  return std::nullopt;
}

// "14:30", "14:30:10", "2:30PM": time since midnight. The fields must be in range, unlike those of
// a duration: "25:00" is refused, because the next day would hardly be what its author means.
std::optional<base::Duration> read_time_of_day(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 4> kWords = {
      {{"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}};
  for (const auto& [word, hour] : kWords) {
    if (same_word(text, word)) return hours{hour};
  }
  const std::string_view half = text.size() < 2 ? text : text.substr(text.size() - 2);
  const bool is_morning = same_word(half, "AM");
  const bool is_evening = same_word(half, "PM");
  if (is_morning || is_evening) text.remove_suffix(half.size());
  const std::optional<std::vector<std::int64_t>> fields = colon_numbers(text);
  if (!fields || fields->size() < 2) return std::nullopt;
  std::int64_t hour = (*fields)[0];
  const std::int64_t second = fields->size() == 3 ? (*fields)[2] : 0;
  // Twelve comes before one: 12:30AM is half past midnight, 12:30PM half past noon.
  if (is_morning || is_evening) {
    if (hour > 12) return std::nullopt;
    hour = hour % 12 + (is_evening ? 12 : 0);
  }
  if (hour > 23 || (*fields)[1] > 59 || second > 59) return std::nullopt;
  return hours{hour} + minutes{(*fields)[1]} + seconds{second};
}

// Returns the midnight of a day; nullopt for one that the month does not have, such as 2026-02-30.
std::optional<base::Instant> midnight_of(std::optional<std::int64_t> year,
                                         std::optional<std::int64_t> month,
                                         std::optional<std::int64_t> day) {
  // Each number has few digits, but may be one that chrono's types cannot hold.
  if (!year || *year > 9'999 || !month || *month > 12 || !day || *day > 31) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return base::Instant{std::chrono::sys_days{date}};
}

// Reads a date with or without a time of day behind "T" or "-", in local time as if it were UTC, as
// is `local`, the present:
// 1. 2026-01-31; the two dashes at fixed places distinguish it from a time of day
// 2. 1/31/26 or 013126, a day of 2026; without a year the next 1/31 from now on
std::optional<base::Instant> read_date(std::string_view text, base::Instant local) {
  constexpr std::size_t kIsoBytes = 10;
  const bool is_iso = text.size() >= kIsoBytes && text[4] == '-' && text[7] == '-';
  const std::size_t end = is_iso ? kIsoBytes : std::min(text.find_first_of("-T"), text.size());
  const std::string_view date = text.substr(0, end);
  base::Duration time{0};
  if (end < text.size()) {
    const std::optional<base::Duration> read = read_time_of_day(text.substr(end + 1));
    if (!read || (text[end] != 'T' && text[end] != '-')) return std::nullopt;
    time = *read;
  }
  std::optional<base::Instant> midnight;
  if (is_iso) {
    midnight = midnight_of(number(date.substr(0, 4)), number(date.substr(5, 2)),
                           number(date.substr(8, 2)));
  } else {
    std::vector<std::string> parts = split(date, '/');
    const bool has_digits = date.find_first_not_of("0123456789") == std::string_view::npos;
    if (has_digits && (date.size() == 4 || date.size() == 6)) {
      parts.clear();
      for (std::size_t at = 0; at < date.size(); at += 2) parts.emplace_back(date.substr(at, 2));
    }
    if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
    for (const std::string& part : parts) {
      if (part.size() > 2) return std::nullopt;
    }
    const std::chrono::year_month_day today{std::chrono::floor<days>(local)};
    std::optional<std::int64_t> year = static_cast<int>(today.year());
    if (parts.size() == 3) {
      year = number(parts[2]);
      if (year) *year += 2'000;
    }
    midnight = midnight_of(year, number(parts[0]), number(parts[1]));
    if (midnight && parts.size() == 2 && *midnight + time < local) {
      midnight = midnight_of(*year + 1, number(parts[0]), number(parts[1]));
    }
  }
  if (!midnight) return std::nullopt;
  return *midnight + time;
}

// Times of day and dates are the user's local ones. They are worked out as if local time were UTC,
// and shifted at the end by the zone that holds at that time: across a change to summer time it is
// not that of now. The forms are tried from the most special to the most general; no text has two
// of them.
std::optional<base::Instant> read_instant(std::string_view text, Now now) {
  if (same_word(text, "now")) return now.instant;
  const bool before = text.size() > 4 && same_word(text.substr(0, 4), "now-");
  if (before || (text.size() > 4 && same_word(text.substr(0, 4), "now+"))) {
    const std::optional<base::Duration> offset = read_offset(text.substr(4));
    if (!offset) return std::nullopt;
    return before ? now.instant - *offset : now.instant + *offset;
  }
  const auto utc = [&now](base::Instant local) {
    return local - (now.zone_at ? now.zone_at(local) : now.zone);
  };
  const base::Instant local = now.instant + now.zone;
  const base::Instant midnight{std::chrono::floor<days>(local)};
  if (same_word(text, "today")) return utc(midnight);
  if (same_word(text, "tomorrow")) return utc(midnight + days{1});
  if (const std::optional<base::Duration> time = read_time_of_day(text)) {
    const base::Instant at = midnight + *time;
    // A time of day that has passed today is tomorrow's.
    return utc(at < local ? at + days{1} : at);
  }
  if (const std::optional<base::Instant> date = read_date(text, local)) return utc(*date);
  return std::nullopt;
}

}  // namespace

// Two results that look alike are different: an error if the text is not a time, and a value
// without a duration if it says that there is no limit.
base::Result<std::optional<base::Duration>> parse_time(std::string_view what,
                                                       std::string_view text) {
  if (is_unlimited(text)) return std::optional<base::Duration>{};
  const std::optional<base::Duration> time = read_time(text);
  if (!time) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": not a time; write minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S or "
                                  "UNLIMITED");
  }
  return time;
}

// Limits have a resolution of minutes and round up, so that "0:30" allows at least what was asked
// for (1.7).
base::Result<std::optional<base::Duration>> parse_limit(std::string_view what,
                                                        std::string_view text) {
  base::Result<std::optional<base::Duration>> time = parse_time(what, text);
  if (!time || !*time) return time;
  return std::optional<base::Duration>{std::chrono::ceil<minutes>(**time)};
}

// Unlike parse_time(), a plain number is seconds here and not minutes: keys such as KillWait have
// that unit.
base::Result<base::Duration> parse_seconds(std::string_view what, std::string_view text) {
  const base::Result<std::int64_t> count = parse_integer(what, text, {.min = 0, .max = kFieldMax});
  if (!count) return count.error();
  return base::Duration{seconds{*count}};
}

// The result may lie in the past ("--begin=2020-01-01"); the job is then eligible at once.
base::Result<base::Instant> parse_instant(std::string_view what, std::string_view text, Now now) {
  const std::optional<base::Instant> instant = read_instant(text, now);
  if (!instant) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": not an instant; write now+10minutes, 14:30 or "
                                  "2026-01-31T14:30");
  }
  return *instant;
}

// Worked out in KiB, the smallest unit, and rounded up to MiB: a job must not get less than it
// asked for. Fractions are refused as in Slurm, which takes 4G, 4GB and 4gb for the same. The bound
// of an exbibyte is checked before the product is made.
base::Result<sched::MemoryMiB> parse_memory(std::string_view what, std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t kib;
  };
  constexpr std::array<Unit, 9> kUnits = {{{"", 1'024},
                                           {"K", 1},
                                           {"KB", 1},
                                           {"M", 1'024},
                                           {"MB", 1'024},
                                           {"G", 1'048'576},
                                           {"GB", 1'048'576},
                                           {"T", 1'073'741'824},
                                           {"TB", 1'073'741'824}}};
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  std::int64_t kib_per_unit = 0;  // the unit is unknown
  for (const Unit& unit : kUnits) {
    if (same_word(unit.name, text.substr(digits.size()))) kib_per_unit = unit.kib;
  }
  const std::optional<std::int64_t> count = number(digits);
  constexpr std::int64_t kKibMax = std::int64_t{1} << 50U;  // an exbibyte
  if (!count || kib_per_unit == 0 || *count > kKibMax / kib_per_unit) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": not a size of memory; write a whole number with K, M, G or T "
                                  "(MiB without a unit)");
  }
  return sched::MemoryMiB{(*count * kib_per_unit + 1023) / 1024};
}

// Fields in front that are 0 are left out, down to the minutes; what follows a larger field has two
// digits. Seconds are rounded down: a job shows 1:00 only after a whole minute.
std::string format_run_time(base::Duration duration) {
  const std::int64_t total = std::chrono::floor<seconds>(duration).count();
  const auto field = [](std::int64_t value, const char* format) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, static_cast<long long>(value));
    return std::string{buffer.data()};
  };
  std::string text;
  const std::int64_t day_count = total / 86'400;
  const std::int64_t hour = total / 3'600 % 24;
  if (day_count > 0) text = field(day_count, "%lld-") + field(hour, "%02lld:");
  if (day_count == 0 && hour > 0) text = field(hour, "%lld:");
  text += field(total / 60 % 60, text.empty() ? "%lld:" : "%02lld:");
  return text + field(total % 60, "%02lld");
}

std::string format_limit(std::optional<base::Duration> limit) {
  return !limit || *limit >= kUnlimited ? "UNLIMITED" : format_run_time(*limit);
}

}  // namespace slurm
