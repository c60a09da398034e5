// The work of the supervisor and the guard for a worker that cannot do it: thaw all that its
// journal names. They know nothing of Kubernetes and allocate next to nothing, so that it works
// when the worker has run into whatever it ran into.
#pragma once

#include <functional>
#include <string>

namespace agent {

// Where an agent is at home.
struct AgentPlaces {
  std::string run_directory{};
  std::string cgroup_root{};
  std::string kubelet_root{};
};

inline constexpr const char* kJournalName = "journal";
inline constexpr const char* kHeartbeatName = "heartbeat";

// Thaws what the journal names and logs what became of it; tries again for a second if a pod stays
// frozen, or until `give_up`. Returns true if nothing is left to thaw: also if there is no journal,
// or a damaged one, which does not name the agent's pods (the next worker asks the API server).
// REQUIRES: the caller holds the run directory's lock, or the agent that does stands still.
bool thaw_everything(const AgentPlaces& places, const std::function<bool()>& give_up);

}  // namespace agent
