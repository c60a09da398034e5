// The guard: the agent's second container, which outlives the first. It has a memory cgroup of its
// own, so that what kills the worker together with its supervisor (kubelet lets an OOM kill a
// container as a whole) leaves the guard alone, and it thaws what the journal names long before
// kubelet starts the other container again. (freezer.md 5.4)
//
// It never fights an agent that lives:
//   1. The run directory's lock is free: no process of an agent is left. The guard takes the
//      lock, thaws once, and gives it back; an agent that starts meanwhile waits for it.
//   2. The lock is held and the worker's loops do not beat: the agent stands still, and its
//      supervisor does not act. The guard thaws beside it, and again every kHangAfter. An agent
//      that goes on after that sees at its next audit that its pods run, and follows the timetable.
//   3. Otherwise it does nothing.
#pragma once

#include "node-agent/survival/run_lock.h"
#include "node-agent/survival/thaw_everything.h"

namespace agent {

// Returns the exit code: 0 after SIGTERM or SIGINT, once no agent is left and nothing of it is
// frozen; 1 if that takes longer than a pod's grace time, or the run directory cannot be used.
// REQUIRES: `lock` is open and not held; SIGTERM and SIGINT are blocked; single-threaded.
int run_guard(const AgentPlaces& places, RunLock& lock);

}  // namespace agent
