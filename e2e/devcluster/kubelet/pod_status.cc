#include "e2e/devcluster/kubelet/pod_status.h"

#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

// From the machine of a pod (pod_machine.h) to the status that a real kubelet would write. The
// operator and the agent must not notice the difference, so whatever they read is as kubelet has
// it: reasons, times in whole seconds, which fields are absent. Fields that they do not read are
// left at the least that the API accepts.
namespace devcluster {
namespace {

using nlohmann::json;
using State = ContainerRecord::State;

// The version of Kubernetes that the other e2e tests run on, with a suffix.
constexpr const char* kKubeletVersion = "v1.34.0-kubegang-devcluster";

// Returns "<runtime>://<id>" as from a container runtime; "" for a container that never started.
std::string container_id(const ContainerRecord& record) {
  return record.id.empty() ? std::string{} : "process://" + record.id;
}

// Fields that are empty are left out, as kubelet leaves them out.
json terminated_state(const ContainerRecord& record) {
  json out{{"exitCode", record.exit.exit_code},
           {"reason", record.reason},
           {"startedAt", rfc3339_seconds(record.started_at)},
           {"finishedAt", rfc3339_seconds(record.finished_at)}};
  if (record.exit.signal != 0) out["signal"] = record.exit.signal;
  if (!record.message.empty()) out["message"] = record.message;
  if (!record.id.empty()) out["containerID"] = container_id(record);
  return out;
}

// Exactly one of the three is set, which is what the operator's reading of a pod rests on.
json container_state(const ContainerRecord& record) {
  switch (record.state) {
    // A waiting container always has a reason ("ContainerCreating" in the simplest case).
    case State::kWaiting: {
      json waiting{{"reason", record.reason}};
      if (!record.message.empty()) waiting["message"] = record.message;
      return {{"waiting", waiting}};
    }
    case State::kRunning:
      return {{"running", {{"startedAt", rfc3339_seconds(record.started_at)}}}};
    case State::kTerminated:
      return {{"terminated", terminated_state(record)}};
  }
  return json::object();
}

// Returns the status of one container, in the order of the fields that kubectl describe shows.
// Restarts and last states do not exist here: each container runs once. `index` counts init
// containers first.
json container_status(const PodMachine& pod, std::size_t index) {
  const kube::Container& spec = pod.container(ContainerIndex{static_cast<std::int32_t>(index)});
  const ContainerRecord& record = pod.records()[index];
  const bool init = index < pod.init_count();
  const bool running = record.state == State::kRunning;
  // An init container is ready once it has done its work; any other as long as it runs.
  const bool ended_well = record.state == State::kTerminated && record.exit.exit_code == 0;
  return {{"name", spec.name},
          {"image", spec.image},
          {"imageID", ""},
          {"containerID", container_id(record)},
          {"ready", init ? ended_well : running},
          {"started", running},
          {"restartCount", 0},
          {"state", container_state(record)},
          {"lastState", json::object()}};
}

// A condition that is true needs no reason; kubelet leaves it out, too.
json condition(const char* type, bool value, const char* reason_when_false, base::Instant since) {
  json out{{"type", type},
           {"status", value ? "True" : "False"},
           {"lastProbeTime", nullptr},
           {"lastTransitionTime", rfc3339_seconds(since)}};
  if (!value && *reason_when_false != '\0') out["reason"] = reason_when_false;
  return out;
}

// Returns when any container changed last: the transition time of conditions that follow from it.
base::Instant latest_change(const PodMachine& pod) {
  base::Instant latest = pod.admitted_at();
  for (const ContainerRecord& record : pod.records()) {
    latest = std::max({latest, record.started_at, record.finished_at});
  }
  return latest;
}

// Returns the four conditions that kubelet writes for every pod. There are no probes, so a
// container that runs is ready.
json conditions(const PodMachine& pod) {
  const kube::PodPhase phase = pod.phase();
  const char* not_ready = phase == kube::PodPhase::kSucceeded ? "PodCompleted"
                          : phase == kube::PodPhase::kFailed  ? "PodFailed"
                                                              : "ContainersNotReady";
  const bool ready = phase == kube::PodPhase::kRunning;
  const base::Instant since = latest_change(pod);
  return json::array(
      {condition("PodScheduled", true, "", pod.admitted_at()),
       condition("Initialized", pod.initialized(), "ContainersNotInitialized", since),
       condition("ContainersReady", ready, not_ready, since),
       condition("Ready", ready, not_ready, since)});
}

// A node that is not heard of is Unknown, not False: its pods may still run, and jobs on it must
// not be taken for ended.
json ready_condition(bool ready, base::Instant now) {
  const std::string time = rfc3339_seconds(now);
  return {
      {"type", "Ready"},
      {"status", ready ? "True" : "Unknown"},
      {"reason", ready ? "KubeletReady" : "NodeStatusUnknown"},
      {"message", ready ? "the process kubelet is ready" : "Kubelet stopped posting node status."},
      {"lastHeartbeatTime", time},
      {"lastTransitionTime", time}};
}

}  // namespace

// RFC 3339 with whole seconds, as kubelet writes times. So a start looks up to a second earlier
// than it was, which is what the "whole second of startedAt" in the rule of settling allows for. A
// zero instant (a container that never started) is the epoch.
std::string rfc3339_seconds(base::Instant time) {
  if (time == base::Instant{}) return "1970-01-01T00:00:00Z";
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string{text.data(), length};
}

// Returns the whole status as a merge patch: lists are replaced, so nothing of an earlier status
// stays. A refused pod has only its phase and the reason; any other also addresses, conditions and
// containers.
// A patch and not an update, because it needs no version of the pod, which others change meanwhile.
json pod_status_patch(const PodMachine& pod, const DownwardFacts& facts) {
  json status{{"phase", to_string(pod.phase())},
              {"startTime", rfc3339_seconds(pod.admitted_at())},
              {"qosClass", to_string(qos_class(pod.pod()))}};
  // Only a refused pod has a reason of its own.
  if (!pod.reason().empty()) {
    status["reason"] = pod.reason();
    status["message"] = pod.message();
  } else {
    status["hostIP"] = facts.host_ip;
    status["hostIPs"] = json::array({{{"ip", facts.host_ip}}});
    status["podIP"] = facts.pod_ip;
    status["podIPs"] = json::array({{{"ip", facts.pod_ip}}});
    status["conditions"] = conditions(pod);
    json init = json::array();
    json mains = json::array();
    for (std::size_t i = 0; i < pod.records().size(); ++i) {
      (i < pod.init_count() ? init : mains).push_back(container_status(pod, i));
    }
    if (!init.empty()) status["initContainerStatuses"] = std::move(init);
    status["containerStatuses"] = std::move(mains);
  }
  return {{"status", std::move(status)}};
}

// All that the node has is allocatable: nothing is set aside for the system. Empty fields of
// nodeInfo are there because the API requires them.
json node_object(const NodeSpec& node, base::Instant now) {
  utsname system{};
  ::uname(&system);
  json labels{
      {"kubernetes.io/hostname", node.name},
      {"kubernetes.io/os", "linux"},
      {"kubernetes.io/arch", std::string_view{system.machine} == "x86_64" ? "amd64" : "arm64"}};
  for (const auto& [name, value] : node.labels) labels[name] = value;
  // Whole CPUs without a suffix, as a real node writes them; parts of one in thousandths.
  json amounts{{"cpu", node.cpu.value() % 1000 == 0 ? std::to_string(node.cpu.value() / 1000)
                                                    : std::to_string(node.cpu.value()) + "m"},
               {"memory", std::to_string(node.memory.value() / 1024) + "Ki"},
               {"ephemeral-storage", std::to_string(node.disk.value() / 1024) + "Ki"},
               {"pods", std::to_string(node.pods_max)}};
  if (node.gpus > 0) amounts[std::string{kGpuResource}] = std::to_string(node.gpus);
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", node.name}, {"labels", labels}}},
          {"spec", json::object()},
          {"status",
           {{"capacity", amounts},
            {"allocatable", amounts},
            {"addresses", json::array({{{"type", "InternalIP"}, {"address", "127.0.0.1"}},
                                       {{"type", "Hostname"}, {"address", node.name}}})},
            {"conditions", json::array({ready_condition(true, now)})},
            {"nodeInfo",
             {{"kubeletVersion", kKubeletVersion},
              {"containerRuntimeVersion", "process://" KUBEGANG_VERSION},
              {"kernelVersion", system.release},
              {"osImage", "local processes"},
              {"operatingSystem", "linux"},
              {"architecture", labels["kubernetes.io/arch"]},
              {"machineID", ""},
              {"systemUUID", ""},
              {"bootID", ""},
              {"kubeProxyVersion", ""}}}}}};
}

// The node has no other conditions, so replacing the list loses nothing.
json node_ready_patch(bool ready, base::Instant now) {
  return {{"status", {{"conditions", json::array({ready_condition(ready, now)})}}}};
}

}  // namespace devcluster
