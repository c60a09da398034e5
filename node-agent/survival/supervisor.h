// PID 1 of the agent: a process with its own address space that starts the worker, and thaws
// everything that the journal names when the worker ends or hangs; then it starts it again.
// (freezer.md 5.4) It knows nothing of Kubernetes and allocates next to nothing, so that it
// works when the worker has run into whatever it ran into.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace agent {

struct SupervisorOptions {
  std::string run_directory{};
  std::string cgroup_root{};
  std::string kubelet_root{};
  std::vector<std::string> worker_command{};  // program and arguments
};

inline constexpr const char* kJournalName = "journal";
inline constexpr const char* kHeartbeatName = "heartbeat";
inline constexpr const char* kLockName = "lock";  // held by the agent that uses the directory
// Set in the worker's environment.
inline constexpr const char* kWorkerVariable = "KUBEGANG_AGENT_WORKER";

// Exit code of a worker, and of the program, whose run directory another agent uses: what that one
// has frozen is none of our business.
inline constexpr int kExitTaken = 3;

// Returns the exit code of the program: after SIGTERM or SIGINT and a worker that thawed all of its
// pods 0; the worker's own code if it never got to work (bad flags, no cgroups); 1 otherwise.
// REQUIRES: SIGTERM, SIGINT and SIGCHLD are blocked; single-threaded.
int supervise(const SupervisorOptions& options);

}  // namespace agent
