#include "operator/gang/pod_pin.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace control {
namespace {

using Json = nlohmann::json;

Json::json_pointer terms() {
  return Json::json_pointer{
      "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"};
}

}  // namespace

bool has_claims(const Json& pod_spec) {
  const auto volumes = pod_spec.find("volumes");
  if (volumes == pod_spec.end() || !volumes->is_array()) return false;
  return std::any_of(volumes->begin(), volumes->end(), [](const Json& volume) {
    return volume.contains("persistentVolumeClaim") || volume.contains("ephemeral");
  });
}

Json affinity_to_node(const std::string& node) {
  Json affinity;
  affinity[terms()] = Json::array(
      {{{"matchFields",
         Json::array(
             {{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}}})}}});
  return affinity;
}

std::optional<std::string> node_of(const kube::Pod& pod) {
  // Bound, or built with its node; otherwise the pin says where it will be.
  if (pod.spec.node_name) return pod.spec.node_name;
  if (pod.spec.affinity.empty()) return std::nullopt;
  // A webhook may have added to it.
  const Json affinity = pod.spec.affinity.json();
  const Json::json_pointer field = terms() / 0 / "matchFields" / 0;
  if (!affinity.contains(field / "values" / 0) ||
      affinity.at(field).value("key", "") != "metadata.name") {
    return std::nullopt;
  }
  const Json& node = affinity.at(field / "values" / 0);
  return node.is_string() ? std::optional{node.get<std::string>()} : std::nullopt;
}

// SOURCE: kube-scheduler's plugins VolumeBinding and VolumeRestrictions.
std::optional<BindingProblem> binding_problem(const kube::Pod& pod) {
  if (pod.spec.node_name) return std::nullopt;
  const kube::Condition* scheduled = kube::find_condition(pod.status.conditions, "PodScheduled");
  if (scheduled == nullptr || scheduled->status != kube::ConditionStatus::kFalse ||
      scheduled->reason != "Unschedulable") {
    return std::nullopt;
  }
  const std::string& message = scheduled->message;
  // A claim that is missing or in use fails on any node; everything else (taints, resources) is
  // about this one.
  const bool about_claims = message.find("persistentvolumeclaim") != std::string::npos ||
                            message.find("PersistentVolumeClaim") != std::string::npos;
  return BindingProblem{about_claims, message};
}

}  // namespace control
