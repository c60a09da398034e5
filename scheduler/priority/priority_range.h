// The range of a job's priority.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/model/ids.h"

namespace sched {

inline constexpr std::int64_t kPriorityMax = 0xffffffffLL;

// Returns the value in its bounds: a job that is not held has at least priority 1.
inline Priority clamped_priority(std::int64_t value) {
  return Priority{static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 1, kPriorityMax))};
}

}  // namespace sched
