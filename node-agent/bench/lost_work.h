// From when tasks ran to what taking turns costs them. Pure.
//
// The reference is the same work in the same slices: what a switch costs is lost around its
// boundary, and between two switches a gang runs alone. So each turn is a pair, the part around its
// boundary and the rest of it, at most a slice apart. Against a run alone before or after, seconds
// away, a busy host or another process shows as a loss or a gain of a percent and more; within the
// pair most of it cancels out, and the rest is shown beside the result.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace agent::bench {

struct Run {  // CLOCK_REALTIME, nanoseconds
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns the times in which at least one of `runs` lasted, ascending, without overlap.
std::vector<Run> merge_runs(std::vector<Run> runs);

// Returns the nanoseconds in which both ran, in [from, to). REQUIRES: merged runs.
std::int64_t overlap_nanos(const std::vector<Run>& a, const std::vector<Run>& b, std::int64_t from,
                           std::int64_t to);

// The switcher is awake this long before a boundary, at most.
inline constexpr base::Duration kAwakeBefore = std::chrono::milliseconds{1};

// Turns of one length, one after the other: a boundary at `from` and every `slice` after it.
struct Turns {
  std::int64_t from = 0;
  std::int64_t slice = 0;
  int count = 0;
  std::int64_t over_after = 0;  // so long after a boundary its switch is over; less than a slice
};

struct LostWork {
  double percent = 0;        // of the CPUs' time, the mean over the turns
  double noise_percent = 0;  // standard error of that mean
};

// `cpus`: of each CPU, the merged runs of all tasks on it. REQUIRES: at least two turns.
LostWork lost_work(const std::vector<std::vector<Run>>& cpus, const Turns& turns);

}  // namespace agent::bench
