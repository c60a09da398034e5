// Timing: what depends on how the scheduler learns that time goes on (Options::told_timing). The
// engine asks for the single difference where it matters; the rest is in the two kinds of Turns.
#pragma once

#include "scheduler/options.h"

namespace sched {

struct Timing {
  // The scheduler names its next instant, and what is due then happens in a Wake: passes, time
  // limits, deadlines. Otherwise passes and time limits are told as events.
  bool wakes = true;
  // JobReady follows a Start. Otherwise a job is ready as soon as it has started.
  bool tells_ready = true;
  // T11: a user's resume waits until a row is free for the job. Slurm does not ask for room
  // (recording manual_suspend_linear_nogang).
  bool resume_needs_room = true;
};

constexpr Timing timing_of(const Options& options) {
  const bool own = !options.told_timing;
  return {.wakes = own, .tells_ready = own, .resume_needs_room = own};
}

}  // namespace sched
