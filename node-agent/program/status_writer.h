// Writes the agent's half of the NodeTimetable when it is worth it: at once for the first time,
// then at most every 5 s, never periodically. One thread runs step(); offer() may be called from
// any.
#pragma once

#include <mutex>
#include <optional>

#include "kube/client.h"
#include "kube/run_loop.h"
#include "node-agent/program/node_watch.h"
#include "node-agent/reporting/node_status.h"

namespace agent {

class StatusWriter {
 public:
  StatusWriter(kube::Client client, const kube::Clock& clock, const NodeWatch& watch,
               kube::Waker& waker);

  // The newest report; older ones that were not written are forgotten.
  void offer(AgentReport report);

  // Returns when to be called again if nothing is offered before.
  base::Duration step();

 private:
  kube::Client client_;
  const kube::Clock& clock_;
  const NodeWatch& watch_;
  kube::Waker& waker_;
  std::optional<base::Duration> written_at_;  // monotonic; of step()'s thread
  kube::NodeTimetableStatus written_;
  std::string written_uid_;

  std::mutex mu_;
  std::optional<AgentReport> report_;  // guarded by mu_
};

}  // namespace agent
