#include "node-agent/bench/lost_work.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace agent::bench {
namespace {

// Returns the nanoseconds of [from, to) in which nothing ran. REQUIRES: merged runs.
std::int64_t idle_nanos(const std::vector<Run>& runs, std::int64_t from, std::int64_t to) {
  std::int64_t idle = to - from;
  auto run = std::partition_point(runs.begin(), runs.end(),
                                  [&](const Run& before) { return before.end <= from; });
  for (; run != runs.end() && run->begin < to; ++run) {
    idle -= std::min(run->end, to) - std::max(run->begin, from);
  }
  return idle;
}

}  // namespace

// By their begins: a run either goes on with the last merged one or begins a new one.
std::vector<Run> merge_runs(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  std::vector<Run> merged;
  for (const Run& run : runs) {
    if (merged.empty() || run.begin > merged.back().end) {
      merged.push_back(run);
    } else {
      merged.back().end = std::max(merged.back().end, run.end);
    }
  }
  return merged;
}

// Both lists are sorted and merged, so one pass suffices: always step on in the list whose run ends
// first.
std::int64_t overlap_nanos(const std::vector<Run>& a, const std::vector<Run>& b, std::int64_t from,
                           std::int64_t to) {
  std::int64_t total = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::int64_t begin = std::max({a[i].begin, b[k].begin, from});
    const std::int64_t end = std::min({a[i].end, b[k].end, to});
    if (begin < end) total += end - begin;
    (a[i].end < b[k].end ? i : k) += 1;
  }
  return total;
}

// Each turn is split into the time around its switch and the rest of the slice. Idle time in the
// rest is the machine's (interrupts, other programs) and is subtracted in proportion; what is left
// was lost by switching.
LostWork lost_work(const std::vector<std::vector<Run>>& cpus, const Turns& turns) {
  const std::int64_t before = std::chrono::nanoseconds{kAwakeBefore}.count();
  const std::int64_t around = before + turns.over_after;
  CHECK(turns.count >= 2 && around < turns.slice);
  const double share = static_cast<double>(around) / static_cast<double>(turns.slice - around);
  const double whole = static_cast<double>(turns.slice) * static_cast<double>(cpus.size());
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < turns.count; ++i) {
    const std::int64_t begin = turns.from + i * turns.slice - before;
    const std::int64_t middle = begin + around;
    double lost = 0;
    for (const std::vector<Run>& runs : cpus) {
      lost += static_cast<double>(idle_nanos(runs, begin, middle)) -
              share * static_cast<double>(idle_nanos(runs, middle, begin + turns.slice));
    }
    sum += 100 * lost / whole;
    squares += (100 * lost / whole) * (100 * lost / whole);
  }
  const double count = turns.count;
  const double mean = sum / count;
  // The variance of a sample; the noise is the standard error of the mean.
  const double variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1);
  return {.percent = mean, .noise_percent = std::sqrt(variance / count)};
}

}  // namespace agent::bench
