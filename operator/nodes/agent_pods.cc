#include "operator/nodes/agent_pods.h"

#include <algorithm>

#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"

namespace control {
namespace {

bool has_label(const kube::Pod& pod, std::string_view name, std::string_view value) {
  const auto found = pod.metadata.labels.find(std::string{name});
  return found != pod.metadata.labels.end() && found->second == value;
}

}  // namespace

bool is_agents(const kube::Pod& pod) {
  return has_label(pod, kube::kLabelName, kube::kLabelNameValue) &&
         has_label(pod, kube::kLabelComponent, kube::kComponentAgent);
}

// An agent that is being stopped runs on for up to two seconds, in which it still switches.
std::optional<AgentPod> agent_in(const kube::Pod& pod) {
  // A pod that has ended stays as an object after an eviction; a newer one may stand beside it.
  if (is_finished(pod)) return std::nullopt;
  const auto& statuses = pod.status.container_statuses;
  const bool runs = std::any_of(statuses.begin(), statuses.end(), [](const auto& status) {
    return status.name == kube::kAgentContainer && status.state.running.has_value();
  });
  if (!runs) return AgentPod::kNotRunning;
  // The agent's readiness probe fails while it cannot switch; a pod that is being deleted may still
  // report Ready.
  const bool is_ready =
      !pod.metadata.deletion_timestamp && kube::is_true(pod.status.conditions, kube::kReady);
  return is_ready ? AgentPod::kReady : AgentPod::kNotReady;
}

std::optional<std::string> AgentPods::observe(const kube::ObjectKey& key, const kube::Pod* pod) {
  if (!ns_ || key.ns != *ns_) return std::nullopt;
  // The pod leaves its old place first, whatever it is now: its labels may have been changed.
  std::optional<std::string> node;
  if (const auto before = node_of_.find(key); before != node_of_.end()) {
    node = before->second;
    const auto there = by_node_.find(*node);
    there->second.erase(key);
    if (there->second.empty()) by_node_.erase(there);
    node_of_.erase(before);
  }
  if (pod == nullptr || !pod->spec.node_name || !is_agents(*pod)) return node;
  const auto state = agent_in(*pod);
  if (!state) return node;
  node = *pod->spec.node_name;
  node_of_[key] = *node;
  by_node_[*node][key] = *state;
  return node;
}

std::optional<AgentPod> AgentPods::on(const std::string& node) const {
  if (!ns_) return std::nullopt;
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return AgentPod::kMissing;
  AgentPod best = AgentPod::kMissing;
  // During a DaemonSet's update with maxSurge two agents' pods are on one node; one that is ready
  // is enough.
  for (const auto& [key, state] : found->second) best = std::max(best, state);
  return best;
}

}  // namespace control
