#include "cli/report/figures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace cli {
namespace {

// Jobs for which waiting hurts most: tests, compilations.
constexpr base::Duration kShortJob = std::chrono::minutes{10};

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Returns the value that 95 % do not exceed, always one of the values: nothing is interpolated.
double p95(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 95 / 100];
}

}  // namespace

Figures figures_of(const std::vector<Served>& jobs, base::Duration used, std::int64_t cpus,
                   base::Duration span) {
  std::vector<double> responses, slowdowns, waits_short, waits_wide;
  for (const Served& job : jobs) {
    responses.push_back(seconds(job.service.response));
    slowdowns.push_back(static_cast<double>(job.service.slowdown_milli()) / 1'000);
    // All time between submission and end in which it did not run: in the queue or suspended.
    const double wait = seconds(job.service.response - job.service.run);
    if (job.service.run <= kShortJob) waits_short.push_back(wait);
    if (job.cpus * 4 >= cpus) waits_wide.push_back(wait);
  }
  const double all = static_cast<double>(cpus) * seconds(span);
  return {.response_mean = mean(responses),
          .slowdown_mean = mean(slowdowns),
          .wait_p95_short = p95(std::move(waits_short)),
          .wait_p95_wide = p95(std::move(waits_wide)),
          .utilization = all > 0 ? seconds(used) / all : 0};
}

// Returns "45 s", "12 min", "3.4 h". Seconds and minutes have two digits, so the columns of a table
// stay narrow.
std::string time_text(double seconds) {
  std::array<char, 32> text{};
  if (seconds < 100) {
    std::snprintf(text.data(), text.size(), "%.0f s", seconds);
  } else if (seconds < 6'000) {
    std::snprintf(text.data(), text.size(), "%.0f min", seconds / 60);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f h", seconds / 3'600);
  }
  return text.data();
}

}  // namespace cli
