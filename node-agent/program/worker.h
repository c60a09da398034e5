// The worker: everything of the agent but the supervisor, wired together and run until it is told
// to stop.
#pragma once

#include "node-agent/program/options.h"

namespace agent {

// Returns the exit code: 0 when it was told to stop and everything of ours is thawed, 1 when it
// could not start or not thaw. `options.cgroup_root` is known. REQUIRES: the run directory
// is locked for this process; no other thread yet.
int run_worker(const Options& options);

}  // namespace agent
