// Slurm's spellings of times and sizes (slurm-semantics.md 1.7; sbatch(1), slurm.conf(5)). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "scheduler/model/ids.h"

namespace slurm {

// Stands for "no limit" where a job asks for it: a hundred years, longer than any partition allows
// and safe to add to an instant.
inline constexpr base::Duration kUnlimited = std::chrono::hours{24 * 365 * 100};

// Parses a limit of time: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S; nothing for -1, INFINITE and
// UNLIMITED. At most kUnlimited. `what` begins the message: "--time". (1.7)
base::Result<std::optional<base::Duration>> parse_time(std::string_view what,
                                                       std::string_view text);

// Does the same, rounded up to whole minutes, as limits are (1.7).
base::Result<std::optional<base::Duration>> parse_limit(std::string_view what,
                                                        std::string_view text);

// Parses a plain number of seconds, at most kUnlimited.
base::Result<base::Duration> parse_seconds(std::string_view what, std::string_view text);

// An instant as --begin and --deadline take it: now, now+N[seconds|minutes|hours|days|weeks],
// HH:MM[:SS] (the next such time of day), midnight, noon, today, tomorrow,
// YYYY-MM-DD[THH:MM[:SS]]; times and dates are local ones.
struct Now {
  base::Instant instant{};
  base::Duration zone{0};  // the local time's distance from UTC now
  // The same at another local time, written as if it were UTC: summer time comes and goes. Empty:
  // always `zone`.
  std::function<base::Duration(base::Instant local)> zone_at{};
};
base::Result<base::Instant> parse_instant(std::string_view what, std::string_view text, Now now);

// Memory: a whole number with K, M (default), G or T; kibibytes are rounded up.
base::Result<sched::MemoryMiB> parse_memory(std::string_view what, std::string_view text);

// Writes run times as squeue does: M:SS, H:MM:SS or D-HH:MM:SS, whole seconds rounded down.
std::string format_run_time(base::Duration duration);
// Writes limits as squeue does: UNLIMITED from kUnlimited on.
std::string format_limit(std::optional<base::Duration> limit);

}  // namespace slurm
