// The agent's Prometheus metrics (freezer.md 5.5), all named kubegang_agent_*.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-agent/reporting/agent_report.h"
#include "node-agent/switching/switch_report.h"
#include "node-agent/switching/switcher.h"

namespace agent {

// The kernel's counts for one pod, so far.
struct FrozenPod {
  std::string uid{};
  std::string gang{};  // its Job, as namespace/name
  std::optional<base::Duration> frozen{};  // nullopt = it could not be read this time
};

// record(), update() and count_frozen() belong to one thread; render() may be called from any.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void set_policy(ThreadPolicy policy);
  // Counts a switch; called once for each.
  void record(const SwitchReport& report);
  // The state of things, as often as it changes.
  void update(const AgentReport& report, const SwitchCounters& counters);
  // Counts all listed pods, now and then. A gang without a listed pod is forgotten.
  void count_frozen(const std::vector<FrozenPod>& pods);
  // In Prometheus' text format.
  std::string render() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace agent
