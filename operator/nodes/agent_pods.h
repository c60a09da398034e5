// AgentPods: which nodes have an agent, by the pods of the agents' DaemonSet. The agent's own last
// word stands in the NodeTimetable; a dead one says nothing, but kubelet does.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kube/api/meta.h"
#include "kube/api/pod.h"
#include "translation/node_translation.h"

namespace control {

// Returns true if the pod is labelled as the chart labels agents' pods. Pure.
bool is_agents(const kube::Pod& pod);

// Returns the state of the agent in the pod; nullopt if it has ended. Pure.
std::optional<AgentPod> agent_in(const kube::Pod& pod);

// Belongs to the loop's thread. Cost: the logarithm of the number of agents. Before the first
// complete list of pods has been observed all nodes seem to have none.
class AgentPods {
 public:
  // Agents are pods of this namespace, labelled as the chart labels them. Until it is called they
  // are not pods, and nothing is known of them but what they say themselves.
  void expect_in(std::string ns) { ns_ = std::move(ns); }

  // Null: the pod is gone. Returns the node whose agent may be another now, or nullopt.
  std::optional<std::string> observe(const kube::ObjectKey& key, const kube::Pod* pod);
  // Returns the best of the pods on the node; nullopt if agents are not pods.
  std::optional<AgentPod> on(const std::string& node) const;

 private:
  std::optional<std::string> ns_;
  std::map<kube::ObjectKey, std::string> node_of_;
  std::map<std::string, std::map<kube::ObjectKey, AgentPod>> by_node_;
};

}  // namespace control
