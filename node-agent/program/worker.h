// The worker: everything of the agent but the supervisor, wired together and run until it is asked
// to stop.
#pragma once

#include "node-agent/program/options.h"

namespace agent {

// Returns the exit code: 0 if it was asked to stop and has thawed everything, 1 if it could not
// start or not thaw. `options.cgroup_root` is known. REQUIRES: the run directory is locked for this
// process; no other thread yet.
int run_worker(const Options& options);

}  // namespace agent
