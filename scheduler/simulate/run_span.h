// A stretch of time in which one timetable says when a job runs: always (no contention on its
// nodes) or as its pod in the timetable. Everything is closed form over the cycle: a week of slices
// costs no more than one.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "timetable/timetable.h"

namespace simulate {

struct RunSpan {
  base::Instant from{};
  base::Instant to = base::kNever;                        // exclusive
  std::shared_ptr<const timetable::Timeline> timetable;  // null = runs all the time
  std::uint32_t pod = 0;
};

bool runs_at(const RunSpan& span, base::Instant t);

// Returns how long the job runs in the part of the span that lies in [from, to).
base::Duration run_time(const RunSpan& span, base::Instant from, base::Instant to);

}  // namespace simulate
