// Writes the agent's half of the NodeTimetable when it is worth it: at once for the first time,
// then at most every 5 s, never periodically. One thread runs step(); offer() may be called from
// any.
#pragma once

#include <memory>
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

  // Takes the newest report; older ones that were not written are forgotten.
  void offer(AgentReport report);

  // Returns when to be called again if nothing is offered before.
  base::Duration step();

  // The agent's last act: writes Ready=False with the reason Stopped through `client`, once a write
  // of step() that is under way has ended, and makes step() write no more. Best effort: blocks for
  // about `limit` at most.
  void say_stopped(const kube::Client& client, base::Duration limit);

 private:
  struct Written {
    std::optional<base::Duration> at{};  // monotonic
    kube::NodeTimetableStatus status{};
    std::shared_ptr<const kube::NodeTimetable> seen{};  // what the watch had then
  };
  // Returns the object with the status that we wrote last, as long as the watch has brought nothing
  // since; then the object as the watch brought it: a restored etcd may have forgotten our write.
  kube::NodeTimetable as_written(const std::shared_ptr<const kube::NodeTimetable>& seen) const;

  kube::Client client_;
  const kube::Clock& clock_;
  const NodeWatch& watch_;
  kube::Waker& waker_;

  std::mutex writing_;    // held during a write
  Written written_;       // guarded by writing_
  bool stopped_ = false;  // guarded by writing_

  std::mutex mu_;
  std::optional<AgentReport> report_;  // guarded by mu_
};

}  // namespace agent
