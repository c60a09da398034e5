// The parts of a Pod and of a PodTemplateSpec that we use. Encoding a Pod that was read from a
// server loses the rest of it: change foreign or templated pods by merge patch, and create a job's
// pods from its template's JSON. SOURCE: k8s.io/api core/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/meta.h"
#include "kube/api/quantity.h"
#include "kube/api/raw_json.h"

namespace kube {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };
constexpr auto names_of(std::type_identity<PodPhase>) {
  return std::to_array<EnumName<PodPhase>>({{PodPhase::kPending, "Pending"},
                                            {PodPhase::kRunning, "Running"},
                                            {PodPhase::kSucceeded, "Succeeded"},
                                            {PodPhase::kFailed, "Failed"},
                                            {PodPhase::kUnknown, "Unknown"}});
}

enum class QosClass { kGuaranteed, kBurstable, kBestEffort };
constexpr auto names_of(std::type_identity<QosClass>) {
  return std::to_array<EnumName<QosClass>>({{QosClass::kGuaranteed, "Guaranteed"},
                                            {QosClass::kBurstable, "Burstable"},
                                            {QosClass::kBestEffort, "BestEffort"}});
}

struct ResourceRequirements {
  ResourceList requests{};
  ResourceList limits{};

  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

// A key of a ConfigMap or a Secret in the pod's namespace.
struct KeySelector {
  std::string name{};  // of the object
  std::string key{};
  bool optional = false;  // the variable is left out if there is no such key

  friend bool operator==(const KeySelector&, const KeySelector&) = default;
};

// At most one of the last three, which are members of valueFrom, is present: else `value` counts.
struct EnvVar {
  std::string name{};
  std::string value{};
  std::optional<std::string> field_path{};  // valueFrom.fieldRef.fieldPath
  std::optional<KeySelector> config_map_key{};
  std::optional<KeySelector> secret_key{};

  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

struct LifecycleHandler {
  RawJson exec{};
  RawJson http_get{};
  RawJson tcp_socket{};
  RawJson sleep{};

  friend bool operator==(const LifecycleHandler&, const LifecycleHandler&) = default;
};

struct Lifecycle {
  std::optional<LifecycleHandler> post_start{};
  std::optional<LifecycleHandler> pre_stop{};

  friend bool operator==(const Lifecycle&, const Lifecycle&) = default;
};

struct ContainerPort {
  std::int32_t container_port = 0;
  std::int32_t host_port = 0;  // 0 = none

  friend bool operator==(const ContainerPort&, const ContainerPort&) = default;
};

struct Container {
  std::string name{};
  std::string image{};
  std::vector<std::string> command{};
  std::vector<std::string> args{};
  std::string working_dir{};
  std::vector<ContainerPort> ports{};
  std::vector<EnvVar> env{};
  ResourceRequirements resources{};
  RawJson liveness_probe{};
  RawJson readiness_probe{};
  RawJson startup_probe{};
  std::optional<Lifecycle> lifecycle{};
  std::optional<std::string> restart_policy{};  // Always in an init container: a sidecar

  friend bool operator==(const Container&, const Container&) = default;
};

struct Toleration {
  std::string key{};  // "" = all keys
  std::string op{};   // "operator": Exists | Equal (absent)
  std::string value{};
  std::string effect{};  // "" = all effects

  friend auto operator<=>(const Toleration&, const Toleration&) = default;
};

struct PodSpec {
  std::optional<std::string> node_name{};
  std::vector<Container> init_containers{};
  std::vector<Container> containers{};
  std::optional<std::string> restart_policy{};  // Always (absent) | OnFailure | Never
  std::optional<std::int64_t> termination_grace_period_seconds{};
  std::optional<std::int64_t> active_deadline_seconds{};
  Labels node_selector{};
  std::vector<Toleration> tolerations{};
  RawJson affinity{};
  RawJson topology_spread_constraints{};
  std::optional<std::string> scheduler_name{};
  std::optional<std::string> priority_class_name{};
  std::optional<std::int32_t> priority{};          // of the class; written by the API server
  std::optional<std::string> preemption_policy{};  // the same: PreemptLowerPriority | Never
  std::optional<std::string> runtime_class_name{};
  std::optional<std::string> service_account_name{};
  std::optional<std::string> hostname{};
  std::optional<std::string> subdomain{};
  bool host_network = false;
  bool host_pid = false;
  bool host_ipc = false;
  ResourceList overhead{};
  std::optional<ResourceRequirements> resources{};  // of the pod as a whole
  RawJson resource_claims{};                        // of devices (DRA)
  RawJson scheduling_gates{};

  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

struct ContainerRunning {
  std::optional<base::Instant> started_at{};  // whole seconds

  friend bool operator==(const ContainerRunning&, const ContainerRunning&) = default;
};

struct ContainerWaiting {
  std::string reason{};
  std::string message{};

  friend bool operator==(const ContainerWaiting&, const ContainerWaiting&) = default;
};

struct ContainerTerminated {
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  std::string reason{};
  std::string message{};
  std::optional<base::Instant> started_at{};
  std::optional<base::Instant> finished_at{};
  std::string container_id{};

  friend bool operator==(const ContainerTerminated&, const ContainerTerminated&) = default;
};

// At most one is present; none means waiting.
struct ContainerState {
  std::optional<ContainerWaiting> waiting{};
  std::optional<ContainerRunning> running{};
  std::optional<ContainerTerminated> terminated{};

  friend bool operator==(const ContainerState&, const ContainerState&) = default;
};

struct ContainerStatus {
  std::string name{};
  ContainerState state{};
  ContainerState last_state{};
  bool ready = false;
  std::optional<bool> started{};
  std::int32_t restart_count = 0;
  std::string image{};
  std::string image_id{};
  std::string container_id{};

  friend bool operator==(const ContainerStatus&, const ContainerStatus&) = default;
};

struct PodStatus {
  std::optional<PodPhase> phase{};
  std::string reason{};
  std::string message{};
  Conditions conditions{};
  std::vector<ContainerStatus> init_container_statuses{};
  std::vector<ContainerStatus> container_statuses{};
  std::vector<ContainerStatus> ephemeral_container_statuses{};  // of `kubectl debug`
  std::optional<QosClass> qos_class{};
  std::optional<base::Instant> start_time{};
  std::string pod_ip{};
  std::string host_ip{};

  friend bool operator==(const PodStatus&, const PodStatus&) = default;
};

struct Pod {
  static constexpr ResourceInfo kResource{"", "v1", "pods", "Pod", true};

  ObjectMeta metadata{};
  PodSpec spec{};
  PodStatus status{};

  friend bool operator==(const Pod&, const Pod&) = default;
};

// Returns true if it is Succeeded or Failed and so holds no resources.
inline bool is_finished(const Pod& pod) {
  return pod.status.phase == PodPhase::kSucceeded || pod.status.phase == PodPhase::kFailed;
}

template <>
base::Result<Pod> decode<Pod>(const JsonView& object);
template <>
const KnownFields& known_fields<Pod>();
nlohmann::json encode(const Pod& pod);

struct PodTemplateSpec {
  ObjectMeta metadata{};  // labels and annotations
  PodSpec spec{};

  friend bool operator==(const PodTemplateSpec&, const PodTemplateSpec&) = default;
};

// Returns the typed view of Job.spec.template. kInvalidArgument names the field below
// `spec.template`; an empty template is one.
base::Result<PodTemplateSpec> decode_template(const RawJson& pod_template);

}  // namespace kube
