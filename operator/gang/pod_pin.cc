#include "operator/gang/pod_pin.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/api/json_text.h"
#include "translation/devices.h"

namespace control {
namespace {

using Json = nlohmann::json;

Json::json_pointer terms() {
  return Json::json_pointer{
      "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"};
}

// SOURCE: kube-scheduler's plugin NodeResourcesFit, "1 Insufficient nvidia.com/gpu, …".
bool lacks_devices(std::string_view message) {
  constexpr std::string_view kInsufficient = "Insufficient ";
  for (std::size_t at = message.find(kInsufficient); at != std::string_view::npos;
       at = message.find(kInsufficient, at + 1)) {
    std::string_view resource = message.substr(at + kInsufficient.size());
    resource = resource.substr(0, resource.find_first_of(", "));
    if (resource.ends_with('.')) resource.remove_suffix(1);
    if (kube::is_extended(resource)) return true;
  }
  return false;
}

}  // namespace

bool has_claims(const Json& pod_spec) {
  const auto devices = pod_spec.find("resourceClaims");
  if (devices != pod_spec.end() && !devices->empty()) return true;
  const auto volumes = pod_spec.find("volumes");
  if (volumes == pod_spec.end() || !volumes->is_array()) return false;
  return std::any_of(volumes->begin(), volumes->end(), [](const Json& volume) {
    return volume.contains("persistentVolumeClaim") || volume.contains("ephemeral");
  });
}

Json affinity_to_node(const std::string& node) {
  Json affinity;
  // matchFields on metadata.name is the only selector that names a node without relying on its
  // labels; DaemonSet pods are placed in the same way.
  affinity[terms()] = Json::array(
      {{{"matchFields",
         Json::array(
             {{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}}})}}});
  return affinity;
}

bool has_gang_gate(const Json& pod_spec) {
  const auto gates = pod_spec.find("schedulingGates");
  return gates != pod_spec.end() && gates->is_array() && gates->size() == 1 &&
         kube::text_at((*gates)[0], "name") == kube::kGangGate;
}

bool has_gang_gate(const kube::Pod& pod) {
  // Most pods of a cluster have no gate: they are told apart before any JSON is made.
  if (pod.spec.scheduling_gates.empty()) return false;
  return has_gang_gate(Json{{"schedulingGates", pod.spec.scheduling_gates.json()}});
}

// A pod that its controller has made again under the name is not in the Job, whose list of pods is
// immutable. One without the gate is in the hands of kube-scheduler and can no longer be pinned.
PinState pin_state(const Json& pod, const std::string& uid, const kube::Job& job) {
  const Json metadata = kube::object_at(pod, "metadata");
  if (kube::text_at(metadata, "uid") != uid) return PinState::kGone;
  const std::string of = kube::text_at(kube::object_at(metadata, "labels"), kube::kLabelJobUid);
  if (of == job.metadata.uid) return PinState::kPinned;
  const bool has_gate = pod.contains("spec") && has_gang_gate(pod.at("spec"));
  return has_gate && !metadata.contains("deletionTimestamp") ? PinState::kMayBePinned
                                                             : PinState::kGone;
}

Json pin_patch(const Json& pod_spec, const kube::Job& job, const PodSlot& slot,
               const std::string& cpuset) {
  Json patch;
  Json& labels = patch["metadata"]["labels"];
  labels[std::string{kube::kLabelJob}] = job.metadata.name;
  // The controller reference of such a pod is its owner's, so this label is the only link to our
  // Job.
  labels[std::string{kube::kLabelJobUid}] = job.metadata.uid;
  labels[std::string{kube::kLabelJobId}] = std::to_string(job.status.job_id.value_or(0));
  labels[std::string{kube::kLabelPartition}] = job.status.partition;
  labels[std::string{kube::kLabelTask}] = std::to_string(slot.index);
  // The same labels as on pods that are built here, so the agent and kubectl need not tell the two
  // apart.
  labels[std::string{kube::kLabelStart}] = std::to_string(job.status.starts.value_or(0));
  Json& bound = patch["metadata"]["annotations"][std::string{kube::kAnnotationCpuSet}];
  if (!cpuset.empty()) bound = cpuset;  // else null, which removes it
  Json& spec = patch["spec"];
  spec["affinity"] = affinity_to_node(slot.node);
  // The gate goes in the same write as the affinity: with two writes a crash in between would leave
  // either a pinned pod that is never released, or a released pod that kube-scheduler puts
  // anywhere.
  spec["schedulingGates"] = nullptr;
  // A merge patch replaces the list as a whole, so the pod's own tolerations are repeated. The API
  // server lets tolerations be added, never removed.
  Json tolerations = pod_spec.value("tolerations", Json::array());
  tolerations.push_back({{"key", kube::kTaintManaged}, {"operator", "Exists"}});
  spec["tolerations"] = std::move(tolerations);
  return patch;
}

std::optional<std::string> node_of(const kube::Pod& pod) {
  // Bound, or built with its node; otherwise the pin says where it will be.
  if (pod.spec.node_name) return pod.spec.node_name;
  if (pod.spec.affinity.empty()) return std::nullopt;
  // A webhook may have added to it.
  const Json affinity = pod.spec.affinity.json();
  const Json::json_pointer field = terms() / 0 / "matchFields" / 0;
  if (!affinity.contains(field / "values" / 0) ||
      kube::text_at(affinity.at(field), "key") != "metadata.name") {
    return std::nullopt;
  }
  const Json& node = affinity.at(field / "values" / 0);
  return node.is_string() ? std::optional{node.get<std::string>()} : std::nullopt;
}

// SOURCE: kube-scheduler's plugins VolumeBinding, VolumeRestrictions and DynamicResources. "cannot
// allocate all claims" is about the node.
std::optional<BindingProblem> binding_problem(const kube::Pod& pod) {
  if (pod.spec.node_name) return std::nullopt;
  const kube::Condition* scheduled = kube::find_condition(pod.status.conditions, "PodScheduled");
  if (scheduled == nullptr || scheduled->status != kube::ConditionStatus::kFalse ||
      scheduled->reason != "Unschedulable") {
    return std::nullopt;
  }
  // The sentences are all that kube-scheduler says; the condition has no code for the plugin that
  // refused.
  const std::string& message = scheduled->message;
  // A claim that is missing or in use fails on any node; everything else (taints, resources) is
  // about this one.
  const bool about_claims = message.find("persistentvolumeclaim") != std::string::npos ||
                            message.find("PersistentVolumeClaim") != std::string::npos ||
                            message.find("resourceclaim") != std::string::npos ||
                            message.find("ResourceClaim") != std::string::npos;
  return BindingProblem{about_claims, lacks_devices(message), message};
}

}  // namespace control
