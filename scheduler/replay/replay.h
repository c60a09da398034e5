// Replays of recordings of Slurm. A recording tells when slurmctld made a pass and of which kind,
// and when its gang scheduler ended a slice. So here both happen as inputs (Pass, SliceEnd) and
// never by themselves: next_due() is always nullopt, there is no Wake, time limits are reached when
// TimeLimitReached says so, and a job is ready as soon as it has started. Tests use a replay, too,
// where they need to say when a pass is made.
//
// Some of Slurm's own decisions (model/quirks.h) exist in replays alone.
#pragma once

#include "scheduler/options.h"
#include "scheduler/scheduler.h"

namespace sched {

Scheduler make_replay(const Options& options = {});

}  // namespace sched
