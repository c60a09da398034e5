// The use that a scheduler is made for.
#pragma once

#include <cstddef>

namespace sched {

struct Options {
  // If true, timetables are taken with take_plans(). If false (simulations), they never are: run(t)
  // is projected only as far as it is asked for, and take_runs() reports when jobs ran.
  bool publishes = true;
  // If false (simulations), expected starts of waiting jobs are not read: Planned is not
  // decided for the backfill's plan, and a pass of the backfill ends as soon as no job that it has
  // not come to can start now. With sched/builtin no starts are estimated.
  bool tells_starts = true;
  // When a period of the priorities ends, at most this many waiting jobs get new ones in one step,
  // and passes wait for the last step.
  std::size_t priorities_per_step = 32'768;  // some ten milliseconds
};

}  // namespace sched
