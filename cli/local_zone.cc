#include "cli/local_zone.h"

#include <ctime>

namespace cli {
namespace {

// Seconds since the epoch, rounded down; also for a local time that is kept as if it were UTC.
std::time_t time_t_of(base::Instant instant) {
  return std::chrono::floor<std::chrono::seconds>(instant.time_since_epoch()).count();
}

// Returns the offset of the zone, east positive, that holds at a local time; `local` has the fields
// of the local time as if it were UTC. If a local time occurs twice or not at all, because the
// clocks are changed, mktime chooses one.
base::Duration zone_at(base::Instant local) {
  const std::time_t as_utc = time_t_of(local);
  std::tm fields{};
  if (gmtime_r(&as_utc, &fields) == nullptr) return base::Duration{0};
  fields.tm_isdst = -1;  // mktime finds out
  return std::chrono::seconds{as_utc - std::mktime(&fields)};
}

}  // namespace

// Slurm reads times of day in the zone of the machine on which sbatch runs, and so does `submit`.
// The offset now is not enough: "--begin=2026-07-01" is to be read with summer's offset even if it
// is winter, hence the function `zone_at`.
slurm::Now local_time(base::Instant now) {
  const std::time_t seconds_count = time_t_of(now);
  std::tm local{};
  if (localtime_r(&seconds_count, &local) == nullptr) return {.instant = now};
  return {.instant = now, .zone = std::chrono::seconds{local.tm_gmtoff}, .zone_at = zone_at};
}

base::Result<base::Instant> past_instant(std::string_view what, std::string_view text,
                                         const slurm::Now& now) {
  const bool is_time_of_day = text.find(':') != std::string_view::npos &&
                              text.find_first_of("-/+T") == std::string_view::npos;
  if (!is_time_of_day) return slurm::parse_instant(what, text, now);
  const auto today = slurm::parse_instant(what, "today", now);
  if (!today) return today.error();
  // The next one, seen from the end of yesterday.
  return slurm::parse_instant(what, text, local_time(*today - base::Duration{1}));
}

}  // namespace cli
