// An instant in words, for people: RFC 3339 in UTC.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace base {

// Returns "2026-01-01T00:00:30Z". The text has another form where the year is not from 1 to 9999.
inline std::string format_utc(std::chrono::sys_seconds t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{t - day};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02lld:%02lld:%02lldZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<long long>(time.hours().count()),
                static_cast<long long>(time.minutes().count()),
                static_cast<long long>(time.seconds().count()));
  return text.data();
}

}  // namespace base
