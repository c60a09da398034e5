// PolicyLoop: the part of the agent's main loop that decides: it reads what the API server says,
// finds out whether the node fails open, and lets the policy work. Agent adds what people see of it
// (log, metrics, status); the simulation runs the same object in virtual time.
#pragma once

#include <optional>

#include "base/time.h"
#include "kube/clock.h"
#include "node-agent/policy/inputs.h"
#include "node-agent/policy/node_policy.h"
#include "node-agent/program/node_watch.h"
#include "node-agent/reporting/agent_report.h"
#include "node-agent/survival/journal.h"
#include "node-agent/survival/lease_watch.h"

namespace agent {

// The main thread only. Each step: read(), then decide(). All references must live longer than it.
class PolicyLoop {
 public:
  // `before`: the journal of the process before, or an empty one.
  PolicyLoop(const kube::Clock& clock, NodeWatch& watch, NodePolicy& policy, const Journal& before);

  // Fills in the inputs as of now, except cpu_ids, which is the caller's.
  void read(bool stopping);
  const Inputs& inputs() const { return inputs_; }
  // The CPUs that are online: all of them, not only those that count as cores of the node.
  void set_cpu_ids(const std::string& ids) { inputs_.cpu_ids = ids; }
  // `told`: inputs(), unless a test tells the policy something else. Returns when to step again at
  // the latest (monotonic).
  base::Duration decide(const Inputs& told);

  // Returns the report without the part that is read from the machine.
  AgentReport report() const;

 private:
  const kube::Clock& clock_;
  NodeWatch& watch_;
  NodePolicy& policy_;
  const std::optional<Rules> rules_before_;
  LeaseWatch lease_watch_;
  std::optional<LeaseReading> last_lease_;
  FailOpen fail_open_;
  Inputs inputs_;
};

}  // namespace agent
