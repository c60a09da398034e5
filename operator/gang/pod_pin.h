// Pods that kube-scheduler binds. Other pods of jobs name their node, which no scheduler looks at;
// but a volume whose class binds at first consumer (WaitForFirstConsumer) waits until
// kube-scheduler has chosen a node for the pod, forever if the pod has one already. So a pod with
// claims is pinned instead: node affinity leaves kube-scheduler no choice but the node that the
// operator has decided on, and it provisions and binds the volumes as for any pod. Pods that others
// have made are pinned too; a scheduling gate keeps them from kube-scheduler until then. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/job.h"
#include "kube/api/pod.h"
#include "translation/pod_slots.h"

namespace control {

// Returns true if a volume of the pod is a claim, by name or made with the pod, or the pod claims
// devices. Claims of other classes go the same way: which class a claim has may not be known yet
// when the pod is made.
bool has_claims(const nlohmann::json& pod_spec);

// Returns affinity to the node by its name, which labels need not have.
nlohmann::json affinity_to_node(const std::string& node);

// Returns true if kubegang's is the only scheduling gate of the pod: others must go first.
bool has_gang_gate(const nlohmann::json& pod_spec);
bool has_gang_gate(const kube::Pod& pod);

// Whether a pod that others have made can be pinned for a Job, as the API server has it.
enum class PinState {
  kMayBePinned,
  kPinned,  // for that Job, by a try whose answer was lost, or by the leader before
  kGone,    // it, or its gate, or it is being deleted
};
// `pod`: the object of that name; the one that the Job lists has `uid`.
PinState pin_state(const nlohmann::json& pod, const std::string& uid, const kube::Job& job);

// Returns the merge patch that pins such a pod to the node of `slot`, names its Job, binds it to
// `cpuset` ("" = to no CPUs, whatever its author wrote) and removes the gate. `pod_spec` is the
// stored one: a merge patch replaces lists as a whole. REQUIRES: it has our gate and no affinity.
nlohmann::json pin_patch(const nlohmann::json& pod_spec, const kube::Job& job, const PodSlot& slot,
                         const std::string& cpuset);

// Returns the node that the pod is bound or pinned to; nullopt: neither.
std::optional<std::string> node_of(const kube::Pod& pod);

// The newest word of kube-scheduler on why it cannot bind the pod; nullopt: it does not say so.
struct BindingProblem {
  bool about_claims = false;   // its claims are missing or wait for an administrator: no node helps
  bool about_devices = false;  // the node has fewer devices free than were counted
  std::string message;
};
std::optional<BindingProblem> binding_problem(const kube::Pod& pod);

}  // namespace control
