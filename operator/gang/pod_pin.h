// Pods that kube-scheduler binds. Our pods name their node, which no scheduler looks at; but a
// volume whose class binds at first consumer (WaitForFirstConsumer) waits until kube-scheduler has
// chosen a node for the pod, for ever if the pod has one already. So a pod with claims is pinned
// instead: node affinity leaves kube-scheduler no choice but the node that we have decided on, and
// it provisions and binds the volumes as for any pod. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/api/pod.h"

namespace control {

// Returns true if a volume of the pod is a claim, by name or made with the pod. Claims of other
// classes go the same way: which class a claim has may not be known yet when the pod is made.
bool has_claims(const nlohmann::json& pod_spec);

// By the node's name, which labels need not have.
nlohmann::json affinity_to_node(const std::string& node);

// The node that the pod is bound or pinned to; nullopt: neither.
std::optional<std::string> node_of(const kube::Pod& pod);

// The newest word of kube-scheduler on why it cannot bind the pod; nullopt: it does not say so.
struct BindingProblem {
  bool about_claims = false;  // its claims are missing or wait for an administrator: no node helps
  std::string message;
};
std::optional<BindingProblem> binding_problem(const kube::Pod& pod);

}  // namespace control
