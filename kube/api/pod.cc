#include "kube/api/pod.h"

#include "kube/api/meta_codec.h"

// The lists of fields decide what this process knows of a pod: all others are passed over in the
// text, take no memory in a cache, and are lost if the pod is encoded again. A field is listed
// because something is decided by it:
//
// * resources, claims, ports, overhead, node name, selectors, tolerations: what a pod takes of a
//   node, and where it may be
// * probes, exec hooks, activeDeadlineSeconds, restart policies: reasons not to freeze a pod, since
//   a frozen one answers no probe and starts no program
// * the states and IDs of containers: they tell if the pod's programs run, and name its cgroups
//
// `field`, `nonzero` and `always` follow the omitempty of the Go types: `ready: false` is written,
// `hostPID: false` is not. So an object that we write has the text that the API server would give
// it.
namespace kube {

template <typename Io>
void visit(Io& io, Like<ResourceRequirements> auto& s) {
  io.field("requests", s.requests);
  io.field("limits", s.limits);
}

// The JSON has two levels where EnvVar has one field. (Not in an anonymous namespace, where the
// codec would not find their visit.)
struct FieldRef {
  std::string field_path;
};
struct EnvVarSource {
  std::optional<FieldRef> field_ref;
  std::optional<KeySelector> config_map_key_ref;
  std::optional<KeySelector> secret_key_ref;
};

template <typename Io>
void visit(Io& io, Like<KeySelector> auto& s) {
  io.field("name", s.name);
  io.field("key", s.key);
  io.field("optional", s.optional);
}

template <typename Io>
void visit(Io& io, Like<FieldRef> auto& s) {
  io.field("fieldPath", s.field_path);
}

template <typename Io>
void visit(Io& io, Like<EnvVarSource> auto& s) {
  io.field("fieldRef", s.field_ref);
  io.field("configMapKeyRef", s.config_map_key_ref);
  io.field("secretKeyRef", s.secret_key_ref);
}

// valueFrom is a level of the JSON that EnvVar does not have. Encoding builds it from the fields
// before the visit, decoding takes it apart afterwards. The visit between the two is the same for
// both, and for the lister of names, which finds the inner fields by it.
template <typename Io>
void visit(Io& io, Like<EnvVar> auto& s) {
  io.field("name", s.name);
  io.field("value", s.value);
  std::optional<EnvVarSource> source;
  if constexpr (!Io::kDecoding) {
    if (s.field_path || s.config_map_key || s.secret_key) {
      source = EnvVarSource{{}, s.config_map_key, s.secret_key};
      if (s.field_path) source->field_ref = FieldRef{*s.field_path};
    }
  }
  io.field("valueFrom", source);
  if constexpr (Io::kDecoding) {
    if (source) {
      if (source->field_ref) s.field_path = source->field_ref->field_path;
      s.config_map_key = std::move(source->config_map_key_ref);
      s.secret_key = std::move(source->secret_key_ref);
    }
  }
}

template <typename Io>
void visit(Io& io, Like<LifecycleHandler> auto& s) {
  io.field("exec", s.exec);
  io.field("httpGet", s.http_get);
  io.field("tcpSocket", s.tcp_socket);
  io.field("sleep", s.sleep);
}

template <typename Io>
void visit(Io& io, Like<Lifecycle> auto& s) {
  // Handlers are raw JSON inside: only whether there is one matters, and of which kind.
  io.field("postStart", s.post_start);
  io.field("preStop", s.pre_stop);
}

template <typename Io>
void visit(Io& io, Like<ContainerPort> auto& s) {
  io.always("containerPort", s.container_port);
  io.nonzero("hostPort", s.host_port);
}

template <typename Io>
void visit(Io& io, Like<Container> auto& s) {
  io.field("name", s.name);
  io.field("image", s.image);
  io.field("command", s.command);
  io.field("args", s.args);
  io.field("workingDir", s.working_dir);
  io.field("ports", s.ports);
  io.field("env", s.env);
  io.field("resources", s.resources);
  io.field("livenessProbe", s.liveness_probe);
  io.field("readinessProbe", s.readiness_probe);
  io.field("startupProbe", s.startup_probe);
  io.field("lifecycle", s.lifecycle);
  io.field("restartPolicy", s.restart_policy);
}

template <typename Io>
void visit(Io& io, Like<Toleration> auto& s) {
  io.field("key", s.key);
  io.field("operator", s.op);
  io.field("value", s.value);
  io.field("effect", s.effect);
}

template <typename Io>
void visit(Io& io, Like<PodSpec> auto& s) {
  io.field("nodeName", s.node_name);
  io.field("initContainers", s.init_containers);
  io.field("containers", s.containers);
  io.field("restartPolicy", s.restart_policy);
  io.field("terminationGracePeriodSeconds", s.termination_grace_period_seconds);
  io.field("activeDeadlineSeconds", s.active_deadline_seconds);
  io.field("nodeSelector", s.node_selector);
  io.field("tolerations", s.tolerations);
  io.field("affinity", s.affinity);
  io.field("topologySpreadConstraints", s.topology_spread_constraints);
  io.field("schedulerName", s.scheduler_name);
  io.field("priorityClassName", s.priority_class_name);
  io.field("priority", s.priority);
  io.field("preemptionPolicy", s.preemption_policy);
  io.field("runtimeClassName", s.runtime_class_name);
  io.field("serviceAccountName", s.service_account_name);
  io.field("hostname", s.hostname);
  io.field("subdomain", s.subdomain);
  io.nonzero("hostNetwork", s.host_network);
  io.nonzero("hostPID", s.host_pid);
  io.nonzero("hostIPC", s.host_ipc);
  io.field("overhead", s.overhead);
  io.field("resources", s.resources);
  io.field("resourceClaims", s.resource_claims);
  io.field("schedulingGates", s.scheduling_gates);
}

template <typename Io>
void visit(Io& io, Like<ContainerRunning> auto& s) {
  io.time("startedAt", s.started_at);
}

template <typename Io>
void visit(Io& io, Like<ContainerWaiting> auto& s) {
  io.field("reason", s.reason);
  io.field("message", s.message);
}

template <typename Io>
void visit(Io& io, Like<ContainerTerminated> auto& s) {
  io.field("exitCode", s.exit_code);
  io.nonzero("signal", s.signal);
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.time("startedAt", s.started_at);
  io.time("finishedAt", s.finished_at);
  io.field("containerID", s.container_id);
}

template <typename Io>
void visit(Io& io, Like<ContainerState> auto& s) {
  io.field("waiting", s.waiting);
  io.field("running", s.running);
  io.field("terminated", s.terminated);
}

template <typename Io>
void visit(Io& io, Like<ContainerStatus> auto& s) {
  io.field("name", s.name);
  io.field("state", s.state);
  io.field("lastState", s.last_state);
  io.field("ready", s.ready);
  io.field("started", s.started);
  io.field("restartCount", s.restart_count);
  // These two have no omitempty in Go: a status of a container that never ran has them as "".
  io.always("image", s.image);
  io.always("imageID", s.image_id);
  io.field("containerID", s.container_id);
}

template <typename Io>
void visit(Io& io, Like<PodStatus> auto& s) {
  io.field("phase", s.phase);
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.field("conditions", s.conditions);
  io.field("initContainerStatuses", s.init_container_statuses);
  io.field("containerStatuses", s.container_statuses);
  io.field("ephemeralContainerStatuses", s.ephemeral_container_statuses);
  io.field("qosClass", s.qos_class);
  io.time("startTime", s.start_time);
  io.field("podIP", s.pod_ip);
  io.field("hostIP", s.host_ip);
}

template <typename Io>
void visit(Io& io, Like<Pod> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

template <typename Io>
void visit(Io& io, Like<PodTemplateSpec> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
}

template <>
base::Result<Pod> decode<Pod>(const JsonView& object) {
  return codec::decode_object<Pod>(object);
}
template <>
const KnownFields& known_fields<Pod>() {
  return codec::fields_of<Pod>();
}
nlohmann::json encode(const Pod& pod) {
  return codec::encode_object(pod);
}

namespace {

// A template has no apiVersion and kind, so fields_of() does not fit.
const KnownFields& fields_of_template() {
  static const KnownFields kFields = codec::list_fields<PodTemplateSpec>();
  return kFields;
}

}  // namespace

// The path begins with "spec.template", so messages name fields as they stand in the user's
// manifest. A template that is absent is an empty text, which is not JSON, and is refused with "got
// null".
base::Result<PodTemplateSpec> decode_template(const RawJson& pod_template) {
  const auto text = JsonText::read(pod_template.text(), fields_of_template());
  const JsonView object = text ? text->root() : JsonView{};
  if (!object.is_object()) {
    return base::invalid_argument("spec.template: want an object, got " + codec::quoted(object));
  }
  PodTemplateSpec out;
  std::optional<std::string> failure;
  const codec::Path spec{nullptr, "spec", {}};
  const codec::Path path{&spec, "template", {}};
  codec::Decoder decoder{object, &path, failure};
  visit(decoder, out);
  if (failure) return base::invalid_argument(*failure);
  return out;
}

}  // namespace kube
