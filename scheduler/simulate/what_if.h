// The simulation of a scenario without told timing. Virtual time jumps from event to event; the
// scheduler makes its own passes and slices, jobs end when they have run for their work.
#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/simulate/history.h"
#include "scheduler/simulate/scenario.h"

namespace simulate {

struct Totals {
  base::Duration span{};              // from 0 to the last thing that happened
  std::int64_t cpu_seconds = 0;       // of the cluster in that span
  std::int64_t used_cpu_seconds = 0;  // running jobs' CPUs × run time
  std::int64_t finished = 0;          // jobs that are in a terminal state
  std::int64_t requeues = 0;
  std::int64_t preempted_jobs = 0;  // suspended, requeued or ended for another, each counted once
  // Numbers over the jobs that were accepted, or that ended: mean, median, the least value that
  // 95 % do not exceed, and maximum.
  struct Spread {
    base::Duration mean{}, median{}, p95{}, max{};
  };
  Spread wait;      // all time in which they did not run
  Spread response;  // submission to end
  // Response ÷ run time of the jobs that ended, at least 1; a job that ran for less than 10 s
  // counts as if it ran for 10 s ("bounded slowdown"). In thousandths.
  struct Slowdown {
    std::int64_t mean = 0, median = 0, p95 = 0, max = 0;
  } slowdown_milli;
};

struct WhatIf {
  std::vector<JobHistory> jobs;  // one per job of the scenario
  base::Instant end{};           // when the last thing happened
  Totals totals;
};

// Runs until every job has ended, nothing more can happen, or the scenario's end. kInvalidArgument:
// a job has neither `work` nor the scenario an `end`. REQUIRES: a legal configuration, timing not
// given. Cost: a week of 10,000 jobs takes seconds.
base::Result<WhatIf> run_what_if(const Scenario& scenario);

}  // namespace simulate
