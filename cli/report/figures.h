// The figures by which ways to schedule are compared: how long people wait, and how full the
// machine is.
#pragma once

#include <string>
#include <vector>

#include "scheduler/simulate/totals.h"

namespace cli {

// Times are in seconds; a wait is all the time of a job between its submission and its end in which
// it did not run: in the queue, or suspended for the turns of other jobs.
struct Figures {
  double response_mean = 0;
  double slowdown_mean = 0;   // bounded slowdown
  double wait_p95_short = 0;  // of jobs that run for 10 minutes at most
  double wait_p95_wide = 0;   // of jobs of a quarter of the machine at least
  double utilization = 0;     // of all CPUs, until the last submission
};

// A job that has ended.
struct Served {
  simulate::Service service{};
  std::int64_t cpus = 0;
};

// `used` of CPU time, of all that `cpus` have in `span`.
Figures figures_of(const std::vector<Served>& jobs, base::Duration used, std::int64_t cpus,
                   base::Duration span);

// Returns "45 s", "12 min", "3.4 h".
std::string time_text(double seconds);

}  // namespace cli
