#include "e2e/devcluster/kubelet/pod_facts.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "kube/api/json_text.h"

namespace devcluster {
namespace {

// nullopt if the list does not name the resource; a 0 that is written is an amount.
std::optional<kube::Quantity> amount_of(const kube::ResourceList& list, std::string_view resource) {
  const auto found = list.find(std::string{resource});
  return found == list.end() ? std::nullopt : std::optional{found->second};
}

// A limit without a request is the request too (API server defaulting).
std::optional<kube::Quantity> request_of(const kube::Container& container,
                                         std::string_view resource) {
  const auto request = amount_of(container.resources.requests, resource);
  return request ? request : amount_of(container.resources.limits, resource);
}

// An absent request counts as 0: such a container takes what is left.
Resources requests_of(const kube::Container& container) {
  return {request_of(container, "cpu").value_or(kube::Quantity{}).milli_cpu(),
          request_of(container, "memory").value_or(kube::Quantity{}).bytes(),
          static_cast<std::int32_t>(
              request_of(container, kGpuResource).value_or(kube::Quantity{}).milli() / 1000)};
}

// "metadata.labels['x']" with prefix "metadata.labels" gives "x".
// The only notation of a key that variables may use.
std::optional<std::string> subscript(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  path.remove_prefix(prefix.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return std::string{path.substr(2, path.size() - 4)};
}

// A label that the pod does not have is an empty variable and no error, as with kubelet.
std::string value_or_empty(const kube::Labels& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string{} : it->second;
}

// Returns the downward API's field paths that pods of jobs use.
base::Result<std::string> field_value(const kube::Pod& pod, const DownwardFacts& facts,
                                      const std::string& path) {
  if (path == "metadata.name") return pod.metadata.name;
  if (path == "metadata.namespace") return pod.metadata.ns;
  if (path == "metadata.uid") return pod.metadata.uid;
  if (path == "spec.nodeName") return node_of(pod);
  if (path == "spec.serviceAccountName") return pod.spec.service_account_name.value_or("");
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (const auto key = subscript(path, "metadata.labels")) {
    return value_or_empty(pod.metadata.labels, *key);
  }
  if (const auto key = subscript(path, "metadata.annotations")) {
    return value_or_empty(pod.metadata.annotations, *key);
  }
  // Refused and not left empty: a program that gets an empty variable fails in ways that are hard
  // to trace.
  return base::invalid_argument("fieldPath \"" + path + "\" is not supported by this kubelet");
}

}  // namespace

// Returns "" for a pod that is not bound: no node has that name.
std::string node_of(const kube::Pod& pod) {
  return pod.spec.node_name.value_or("");
}

std::optional<std::string> node_to_bind(const kube::Pod& pod) {
  if (pod.spec.node_name || !pod.spec.scheduling_gates.empty() || pod.spec.affinity.empty()) {
    return std::nullopt;
  }
  const nlohmann::json::json_pointer field{
      "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
      "matchFields/0"};
  const nlohmann::json affinity = pod.spec.affinity.json();
  if (!affinity.contains(field) || kube::text_at(affinity.at(field), "key") != "metadata.name" ||
      !affinity.contains(field / "values" / 0)) {
    return std::nullopt;
  }
  const nlohmann::json& node = affinity.at(field / "values" / 0);
  return node.is_string() ? std::optional{node.get<std::string>()} : std::nullopt;
}

// The API server writes the grace period into the object when the deletion is asked for.
std::optional<base::Duration> deletion_grace(const kube::Pod& pod) {
  constexpr std::int64_t kGraceSeconds = 30;  // the API's default
  if (!pod.metadata.deletion_timestamp) return std::nullopt;
  return std::chrono::seconds{pod.metadata.deletion_grace_period_seconds.value_or(kGraceSeconds)};
}

// Guaranteed: every container has limits of CPU and memory that equal its requests. BestEffort: no
// container says anything of either.
kube::QosClass qos_class(const kube::Pod& pod) {
  bool anything_set = false;
  bool guaranteed = true;
  for (const auto* containers : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const kube::Container& entry : *containers) {
      for (const char* resource : {"cpu", "memory"}) {
        const auto request = request_of(entry, resource);
        const auto limit = amount_of(entry.resources.limits, resource);
        anything_set = anything_set || request;
        // Both resources of every container must be named: one gap makes the pod Burstable.
        guaranteed = guaranteed && limit && request == limit;
      }
    }
  }
  if (!anything_set) return kube::QosClass::kBestEffort;
  return guaranteed ? kube::QosClass::kGuaranteed : kube::QosClass::kBurstable;
}

// Init containers run one after the other and before the rest, so the largest of them counts, not
// their sum.
Resources pod_requests(const kube::Pod& pod) {
  Resources sum;
  for (const kube::Container& entry : pod.spec.containers) {
    const Resources one = requests_of(entry);
    sum.cpu += one.cpu;
    sum.memory += one.memory;
    sum.gpus += one.gpus;
  }
  for (const kube::Container& entry : pod.spec.init_containers) {
    const Resources one = requests_of(entry);
    sum.cpu = std::max(sum.cpu, one.cpu);
    sum.memory = std::max(sum.memory, one.memory);
    sum.gpus = std::max(sum.gpus, one.gpus);
  }
  return sum;
}

// With the cgroupfs driver a path is made of plain folders; the systemd driver would name slices.
std::string pod_cgroup(kube::QosClass qos, std::string_view uid) {
  std::string path = "kubepods/";
  if (qos == kube::QosClass::kBurstable) path += "burstable/";
  if (qos == kube::QosClass::kBestEffort) path += "besteffort/";
  return path + "pod" + std::string{uid};
}

// A "$" at the very end, or before any other character, is an ordinary one; "$$(NAME)" is the text
// "$(NAME)"; a reference without its closing parenthesis is left as it is, with all that follows.
// One pass from left to right; the value of a reference is not expanded again.
// For example with A=1: "$(A)-$(B)" becomes "1-$(B)", and "$$(A)" becomes "$(A)".
std::string expand_references(std::string_view text,
                              const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out.push_back(text[i]);
    } else if (text[i + 1] == '$') {
      out.push_back('$');
      ++i;
    } else if (text[i + 1] == '(') {
      const std::size_t close = text.find(')', i);
      if (close == std::string_view::npos) return out + std::string{text.substr(i)};
      const auto found = variables.find(std::string{text.substr(i + 2, close - i - 2)});
      out += found != variables.end() ? found->second : std::string{text.substr(i, close - i + 1)};
      i = close;
    } else {
      out.push_back('$');
    }
  }
  return out;
}

namespace {

// Returns the value of a variable; nullopt if an optional key is missing. An error means that the
// container cannot be started, which its status then tells.
base::Result<std::optional<std::string>> value_of(const kube::EnvVar& entry, const kube::Pod& pod,
                                                  const DownwardFacts& facts,
                                                  const std::map<std::string, std::string>& earlier,
                                                  KeyLookup& lookup) {
  if (entry.field_path) {
    base::Result<std::string> value = field_value(pod, facts, *entry.field_path);
    if (!value.ok()) return value.error().with_context("env " + entry.name);
    return std::optional{std::move(value).value()};
  }
  const auto& key = entry.config_map_key ? entry.config_map_key : entry.secret_key;
  if (!key) return std::optional{expand_references(entry.value, earlier)};
  const auto kind = entry.config_map_key ? KeyLookup::Kind::kConfigMap : KeyLookup::Kind::kSecret;
  base::Result<std::string> value = lookup.find(kind, pod.metadata.ns, *key);
  if (value.ok()) return std::optional{std::move(value).value()};
  if (key->optional) return std::optional<std::string>{};
  return value.error();
}

}  // namespace

// 1. what the node gives every container, 2. the container's own variables, which win over it, in
// the order of the list. The result is sorted by name, since an environment has no order.
base::Result<std::vector<std::string>> container_environment(
    const kube::Pod& pod, const kube::Container& container, const DownwardFacts& facts,
    const std::vector<std::pair<std::string, std::string>>& base_environment, KeyLookup& lookup) {
  // A map, so a name occurs once: programs that read the first or the last of two would disagree.
  std::map<std::string, std::string> variables{base_environment.begin(), base_environment.end()};
  // In the order of the list, because a value may refer to the variables before it.
  for (const kube::EnvVar& entry : container.env) {
    base::Result<std::optional<std::string>> value = value_of(entry, pod, facts, variables, lookup);
    if (!value.ok()) return value.error();
    // Without its optional key a variable is not set, which differs from being empty.
    if (*value) variables[entry.name] = std::move(**value);
  }
  std::vector<std::string> out;
  out.reserve(variables.size());
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

}  // namespace devcluster
