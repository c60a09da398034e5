// Actions of the keys that are limits of QOS and of associations (conf_actions.h).
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "scheduler/model/limits.h"
#include "slurm/conf_actions.h"
#include "slurm/quantities.h"
#include "slurm/tres.h"

namespace slurm {

// Reads a list such as cpu=8,mem=2G. It replaces the list before: resources that it leaves out have
// no limit.
template <sched::TresLimits sched::Limits::*field>
base::Status tres_limit(sched::Limits& limits, std::string_view key, std::string_view value) {
  base::Result<sched::TresLimits> read = parse_tres_limits(key, value);
  if (!read) return read.error();
  limits.*field = *read;
  return {};
}

// Reads a number of jobs; −1 sets none. Zero is a limit, too: no job may be there.
template <std::optional<int> sched::Limits::*field>
base::Status count_limit(sched::Limits& limits, std::string_view key, std::string_view value) {
  (limits.*field).reset();
  if (value == "-1") return {};
  const base::Result<std::int64_t> read =
      parse_integer(key, value, {.min = 0, .max = 1'000'000'000});
  if (!read) return read.error();
  limits.*field = static_cast<int>(*read);
  return {};
}

// Wall-clock time, rounded up to whole minutes (1.7); −1 and UNLIMITED set none.
template <std::optional<base::Duration> sched::Limits::*field>
base::Status wall_limit(sched::Limits& limits, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_limit(key, value);
  if (!time) return time.error();
  limits.*field = *time;
  return {};
}

}  // namespace slurm
