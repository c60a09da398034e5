#include "e2e/devcluster/kubelet/pod_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

// "100m", "1", "0.5", "64Mi", "1e3" as thousandths. Nothing when it does not parse.
std::optional<std::int64_t> quantity_milli(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  static const std::map<std::string_view, double> kFactors{{"", 1},
                                                           {"m", 1e-3},
                                                           {"k", 1e3},
                                                           {"M", 1e6},
                                                           {"G", 1e9},
                                                           {"T", 1e12},
                                                           {"Ki", 1024.0},
                                                           {"Mi", 1048576.0},
                                                           {"Gi", 1073741824.0},
                                                           {"Ti", 1099511627776.0}};
  const auto factor = kFactors.find(
      std::string_view{end, static_cast<std::size_t>(text.data() + text.size() - end)});
  if (factor == kFactors.end()) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(number * factor->second * 1000.0));
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

// The member, or an empty object.
const json& member(const json& object, const char* key) {
  static const json kEmpty = json::object();
  const auto it = object.find(key);
  return it != object.end() && it->is_object() ? *it : kEmpty;
}

const json& list(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : kEmpty;
}

std::vector<std::string> strings(const json& object, const char* key) {
  std::vector<std::string> out;
  for (const json& entry : list(object, key)) {
    if (entry.is_string()) out.push_back(entry.get<std::string>());
  }
  return out;
}

std::map<std::string, std::string> string_map(const json& object, const char* key) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : member(object, key).items()) {
    if (value.is_string()) out.emplace(name, value.get<std::string>());
  }
  return out;
}

std::optional<std::int64_t> quantity_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (it->is_number()) return quantity_milli(it->dump());
  return it->is_string() ? quantity_milli(it->get<std::string>()) : std::nullopt;
}

Resources resources(const json& object) {
  Resources out;
  if (const auto cpu = quantity_at(object, "cpu")) out.cpu = MilliCpu{*cpu};
  if (const auto memory = quantity_at(object, "memory")) out.memory = MemoryBytes{*memory / 1000};
  return out;
}

EnvVar env_var(const json& entry) {
  EnvVar out{.name = text_at(entry, "name"), .value = text_at(entry, "value")};
  const json& from = member(entry, "valueFrom");
  if (from.contains("fieldRef")) {
    out.source = EnvVar::Source::kField;
    out.value = text_at(from["fieldRef"], "fieldPath");
    return out;
  }
  for (const auto& [name, source] : {std::pair{"configMapKeyRef", EnvVar::Source::kConfigMap},
                                     std::pair{"secretKeyRef", EnvVar::Source::kSecret}}) {
    if (!from.contains(name)) continue;
    out.source = source;
    out.value = text_at(from[name], "name");
    out.key = text_at(from[name], "key");
    out.optional = from[name].value("optional", false);
  }
  return out;
}

ContainerSpec container(const json& object) {
  ContainerSpec out;
  out.name = text_at(object, "name");
  out.image = text_at(object, "image");
  out.command = strings(object, "command");
  out.args = strings(object, "args");
  out.working_dir = text_at(object, "workingDir");
  for (const json& entry : list(object, "env")) out.environment.push_back(env_var(entry));
  const json& declared = member(object, "resources");
  out.requests = resources(member(declared, "requests"));
  out.limits = resources(member(declared, "limits"));
  // A limit without a request is the request too (API server defaulting).
  if (!out.requests.cpu) out.requests.cpu = out.limits.cpu;
  if (!out.requests.memory) out.requests.memory = out.limits.memory;
  return out;
}

// "metadata.labels['x']" with prefix "metadata.labels" gives "x".
std::optional<std::string> subscript(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  path.remove_prefix(prefix.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return std::string{path.substr(2, path.size() - 4)};
}

std::string value_or_empty(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string{} : it->second;
}

base::Result<std::string> field_value(const PodSpec& pod, const DownwardFacts& facts,
                                      const std::string& path) {
  if (path == "metadata.name") return pod.name;
  if (path == "metadata.namespace") return pod.namespace_name;
  if (path == "metadata.uid") return pod.uid;
  if (path == "spec.nodeName") return pod.node;
  if (path == "spec.serviceAccountName") return pod.service_account;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (const auto key = subscript(path, "metadata.labels")) {
    return value_or_empty(pod.labels, *key);
  }
  if (const auto key = subscript(path, "metadata.annotations")) {
    return value_or_empty(pod.annotations, *key);
  }
  return base::invalid_argument("fieldPath \"" + path + "\" is not supported by this kubelet");
}

}  // namespace

std::string_view to_string(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return "";
}

base::Result<PodSpec> parse_pod(const json& pod) {
  const json& metadata = member(pod, "metadata");
  const json& spec = member(pod, "spec");
  PodSpec out;
  out.namespace_name = text_at(metadata, "namespace");
  out.name = text_at(metadata, "name");
  out.uid = text_at(metadata, "uid");
  if (out.name.empty() || out.uid.empty()) {
    return base::invalid_argument("pod without metadata.name or metadata.uid");
  }
  out.labels = string_map(metadata, "labels");
  out.annotations = string_map(metadata, "annotations");
  out.node = text_at(spec, "nodeName");
  out.hostname = text_at(spec, "hostname");
  if (out.hostname.empty()) out.hostname = out.name;
  out.service_account = text_at(spec, "serviceAccountName");
  if (const std::string policy = text_at(spec, "restartPolicy"); !policy.empty()) {
    out.restart_policy = policy;
  }
  if (const auto grace = spec.find("terminationGracePeriodSeconds");
      grace != spec.end() && grace->is_number_integer()) {
    out.grace = std::chrono::seconds{grace->get<std::int64_t>()};
  }
  for (const json& entry : list(spec, "initContainers")) {
    out.init_containers.push_back(container(entry));
  }
  for (const json& entry : list(spec, "containers")) out.containers.push_back(container(entry));
  if (out.containers.empty()) {
    return base::invalid_argument("pod " + out.namespace_name + "/" + out.name +
                                  ": spec.containers is empty");
  }
  out.phase = text_at(member(pod, "status"), "phase");
  return out;
}

QosClass qos_class(const PodSpec& pod) {
  bool anything_set = false;
  bool guaranteed = true;
  for (const auto* containers : {&pod.init_containers, &pod.containers}) {
    for (const ContainerSpec& entry : *containers) {
      anything_set = anything_set || entry.requests != Resources{} || entry.limits != Resources{};
      guaranteed =
          guaranteed && entry.limits.cpu && entry.limits.memory && entry.requests == entry.limits;
    }
  }
  if (!anything_set) return QosClass::kBestEffort;
  return guaranteed ? QosClass::kGuaranteed : QosClass::kBurstable;
}

Resources pod_requests(const PodSpec& pod) {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  for (const ContainerSpec& entry : pod.containers) {
    cpu += entry.requests.cpu.value_or(MilliCpu{}).value();
    memory += entry.requests.memory.value_or(MemoryBytes{}).value();
  }
  for (const ContainerSpec& entry : pod.init_containers) {
    cpu = std::max(cpu, entry.requests.cpu.value_or(MilliCpu{}).value());
    memory = std::max(memory, entry.requests.memory.value_or(MemoryBytes{}).value());
  }
  return {MilliCpu{cpu}, MemoryBytes{memory}};
}

std::string pod_cgroup(QosClass qos, std::string_view uid) {
  std::string path = "kubepods/";
  if (qos == QosClass::kBurstable) path += "burstable/";
  if (qos == QosClass::kBestEffort) path += "besteffort/";
  return path + "pod" + std::string{uid};
}

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

base::Result<std::vector<std::string>> container_environment(
    const PodSpec& pod, const ContainerSpec& container, const DownwardFacts& facts,
    const std::vector<std::pair<std::string, std::string>>& base_environment, KeyLookup& lookup) {
  std::map<std::string, std::string> variables{base_environment.begin(), base_environment.end()};
  for (const EnvVar& entry : container.environment) {
    switch (entry.source) {
      case EnvVar::Source::kValue:
        variables[entry.name] = expand_references(entry.value, variables);
        break;
      case EnvVar::Source::kField: {
        base::Result<std::string> value = field_value(pod, facts, entry.value);
        if (!value.ok()) return value.error().with_context("env " + entry.name);
        variables[entry.name] = std::move(value).value();
        break;
      }
      case EnvVar::Source::kConfigMap:
      case EnvVar::Source::kSecret: {
        base::Result<std::string> value =
            lookup.find(entry.source, pod.namespace_name, entry.value, entry.key);
        if (value.ok()) {
          variables[entry.name] = std::move(value).value();
        } else if (!entry.optional) {
          return value.error();
        }
        break;
      }
    }
  }
  std::vector<std::string> out;
  out.reserve(variables.size());
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

}  // namespace devcluster
