// PID 1 of the agent's container: a process with its own address space that starts the worker, and
// thaws everything that the journal names when the worker ends or hangs; then it starts it again.
// It holds the run directory for itself and its workers. (freezer.md 5.4)
#pragma once

#include <string>
#include <vector>

#include "node-agent/survival/run_lock.h"
#include "node-agent/survival/thaw_everything.h"

namespace agent {

struct SupervisorOptions {
  AgentPlaces places{};
  std::vector<std::string> worker_command{};  // program and arguments
};

// Set in the worker's environment.
inline constexpr const char* kWorkerVariable = "KUBEGANG_AGENT_WORKER";

// Returns the exit code of the program: after SIGTERM or SIGINT and a worker that thawed all of its
// pods 0; the worker's own code if it never got to work (bad flags, no cgroups); 1 otherwise.
// REQUIRES: `lock` is held; SIGTERM, SIGINT and SIGCHLD are blocked; single-threaded.
int supervise(const SupervisorOptions& options, RunLock& lock);

}  // namespace agent
