#include "slurm/conf_backfill.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "slurm/conf_actions.h"
#include "slurm/limits.h"
#include "slurm/text.h"

namespace slurm {
namespace {

using sched::BackfillParameters;

// The bounds are those of slurm.conf(5), SchedulerParameters, where it names one. The others keep a
// planning pass from being asked for more jobs than a cluster may hold.
constexpr std::int64_t kMonthSeconds = 30 * 24 * 3600;
constexpr int kJobsMax = 1'000'000;

// Off unless they are named.
struct BackfillFlag {
  std::string_view name;
  bool BackfillParameters::*field;
};
constexpr std::array<BackfillFlag, 5> kBackfillFlags = {
    {{"bf_continue", &BackfillParameters::continues},
     {"bf_busy_nodes", &BackfillParameters::busy_nodes},
     {"bf_licenses", &BackfillParameters::licenses},
     {"bf_one_resv_per_job", &BackfillParameters::one_resv_per_job},
     {"bf_running_job_reserve", &BackfillParameters::running_job_reserve}}};

// Numbers of jobs, nodes or places in a table.
struct BackfillNumber {
  std::string_view name;
  int BackfillParameters::*field;
  IntegerRange range;
};
constexpr std::array<BackfillNumber, 8> kBackfillNumbers = {
    {{"bf_max_job_test", &BackfillParameters::max_job_test, {.min = 1, .max = kJobsMax}},
     {"bf_max_job_start", &BackfillParameters::max_job_start, {.min = 0, .max = 10'000}},
     {"bf_max_job_part", &BackfillParameters::max_job_part, {.min = 0, .max = kJobsMax}},
     {"bf_max_job_user", &BackfillParameters::max_job_user, {.min = 0, .max = kJobsMax}},
     {"bf_max_job_user_part", &BackfillParameters::max_job_user_part, {.min = 0, .max = kJobsMax}},
     {"bf_job_part_count_reserve",
      &BackfillParameters::job_part_count_reserve,
      {.min = 0, .max = 100'000}},
     {"bf_max_job_array_resv", &BackfillParameters::max_job_array_resv, {.min = 0, .max = 1'000}},
     {"bf_node_space_size",
      &BackfillParameters::node_space_size,
      {.min = 2, .max = 2 * kJobsMax}}}};

// The unit differs by option: bf_window is in minutes, as time limits are, and all others in
// seconds (8.2).
struct BackfillTime {
  std::string_view name;
  base::Duration BackfillParameters::*field;
  std::int64_t unit_seconds;
  IntegerRange range;
};
constexpr std::array<BackfillTime, 5> kBackfillTimes = {
    {{"bf_interval", &BackfillParameters::interval, 1, {.min = 1, .max = 10'800}},
     {"bf_resolution", &BackfillParameters::resolution, 1, {.min = 1, .max = 3'600}},
     {"bf_window", &BackfillParameters::window, 60, {.min = 1, .max = 43'200}},
     {"bf_window_linear", &BackfillParameters::window_linear, 1, {.min = 0, .max = kMonthSeconds}},
     {"bf_min_age_reserve",
      &BackfillParameters::min_age_reserve,
      1,
      {.min = 0, .max = kMonthSeconds}}}};

// They say how long Slurm's thread holds its locks, and decide nothing here.
constexpr std::array<std::string_view, 3> kLockTimes = {"bf_max_time", "bf_yield_interval",
                                                        "bf_yield_sleep"};

}  // namespace

// Looks into one table for each type of value. An option that is in none of them is refused: it
// would change what the backfill does. Options of features that are missing (heterogeneous jobs)
// end here, too, so the message says that they are not supported.
base::Status read_backfill_option(BackfillParameters& backfill, std::string_view key,
                                  std::string_view option) {
  const auto [name, value] = split_option(option);
  const std::string what = std::string{key} + " " + std::string{name};
  // 1. Options that mean something only to Slurm's threads are accepted and dropped.
  for (const std::string_view throttle : kLockTimes) {
    if (same_word(name, throttle)) return {};
  }
  // 2. Flags, which take no value.
  for (const BackfillFlag& flag : kBackfillFlags) {
    if (same_word(name, flag.name)) return set_flag(backfill.*(flag.field), key, option, value);
  }
  // 3. Counts. 0 means "no limit" where the range begins with it.
  for (const BackfillNumber& number : kBackfillNumbers) {
    if (!same_word(name, number.name)) continue;
    return set_integer(backfill.*(number.field), what, value, number.range);
  }
  // -1 switches the backfill off (8.2).
  if (same_word(name, "bf_interval") && value == "-1") {
    backfill.interval = std::chrono::seconds{-1};
    return {};
  }
  // 4. Times, in the unit of the option.
  for (const BackfillTime& time : kBackfillTimes) {
    if (!same_word(name, time.name)) continue;
    const base::Result<std::int64_t> read = parse_integer(what, value, time.range);
    if (!read) return read.error();
    backfill.*(time.field) = std::chrono::seconds{*read * time.unit_seconds};
    return {};
  }
  // 5. The one priority. Jobs below it get no reservation (8.2).
  if (same_word(name, "bf_min_prio_reserve")) {
    const base::Result<std::int64_t> read =
        parse_integer(what, value, {.min = 0, .max = kUint32Max});
    if (!read) return read.error();
    backfill.min_prio_reserve = sched::Priority{static_cast<std::uint32_t>(*read)};
    return {};
  }
  return not_supported(what);
}

}  // namespace slurm
