// What the process kubelet needs of a Pod object, as plain values, and what kubelet derives from
// it: the QoS class, the cgroup it belongs into, the environment of its containers. Thread-safe:
// values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/strong_int.h"
#include "base/time.h"

namespace devcluster {

using MilliCpu = base::StrongInt<struct MilliCpuTag, std::int64_t>;
using MemoryBytes = base::StrongInt<struct MemoryBytesTag, std::int64_t>;

// Requests or limits. Absent = not set.
struct Resources {
  std::optional<MilliCpu> cpu;
  std::optional<MemoryBytes> memory;
  friend bool operator==(const Resources&, const Resources&) = default;
};

// Where a variable's value comes from.
struct EnvVar {
  enum class Source { kValue, kField, kConfigMap, kSecret };
  std::string name;
  Source source = Source::kValue;
  std::string value;  // kValue: the text; kField: the field path; else the object's name
  std::string key;    // kConfigMap, kSecret
  bool optional = false;
  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

struct ContainerSpec {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;
  std::vector<EnvVar> environment;
  Resources requests;
  Resources limits;
};

// SOURCE: kubernetes.io "Pod Quality of Service Classes".
enum class QosClass { kGuaranteed, kBurstable, kBestEffort };
std::string_view to_string(QosClass qos);

struct PodSpec {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string node;
  std::string hostname;  // spec.hostname, else the name
  std::string service_account;
  std::string restart_policy = "Always";
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<ContainerSpec> init_containers;  // run one after the other, before the containers
  std::vector<ContainerSpec> containers;
  base::Duration grace = std::chrono::seconds{30};  // terminationGracePeriodSeconds
  std::string phase;                                // of the status that the object already has
};

// kInvalidArgument names the field. Reads leniently what an API server has let through.
base::Result<PodSpec> parse_pod(const nlohmann::json& pod);

QosClass qos_class(const PodSpec& pod);

// Sum over containers, or the largest init container if that is more (as kubelet admits).
Resources pod_requests(const PodSpec& pod);

// Below the node's cgroup root, with the cgroupfs driver's names: "kubepods/burstable/pod<uid>"
// (Guaranteed: "kubepods/pod<uid>"). SOURCE: freezer.md 3 "Paths".
std::string pod_cgroup(QosClass qos, std::string_view uid);

// What the downward API can say about a pod that runs.
struct DownwardFacts {
  std::string pod_ip;
  std::string host_ip;
};

// A key of a ConfigMap or Secret; kNotFound says what is missing.
struct KeyLookup {
  virtual ~KeyLookup() = default;
  virtual base::Result<std::string> find(EnvVar::Source source, const std::string& namespace_name,
                                         const std::string& object, const std::string& key) = 0;
};

// NAME=value entries: `base_environment`, then the container's own, later ones winning, with
// $(NAME) references to earlier ones expanded as kubelet does. kInvalidArgument: a field path that
// is not supported; kNotFound: a ConfigMap or Secret is missing.
base::Result<std::vector<std::string>> container_environment(
    const PodSpec& pod, const ContainerSpec& container, const DownwardFacts& facts,
    const std::vector<std::pair<std::string, std::string>>& base_environment, KeyLookup& lookup);

// "$(NAME)" replaced by its value, "$$" by "$", an unknown name left as it is.
// SOURCE: kubernetes.io "Define Dependent Environment Variables".
std::string expand_references(std::string_view text,
                              const std::map<std::string, std::string>& variables);

}  // namespace devcluster
