// Facts that kubelet derives from a Pod: the QoS class, the cgroup it belongs into, the environment
// of its containers. Thread-safe: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/api/pod.h"

namespace devcluster {

// CPU and memory of a pod or node.
inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";

struct Resources {
  kube::MilliCpu cpu{};
  kube::Bytes memory{};
  std::int32_t gpus = 0;
  friend bool operator==(const Resources&, const Resources&) = default;
};

// Returns the node to which affinity ties a pod that no kube-scheduler has bound yet and that no
// gate keeps; nullopt: there is no such pod to be bound.
std::optional<std::string> node_to_bind(const kube::Pod& pod);

// spec.nodeName, "" before the pod is bound.
std::string node_of(const kube::Pod& pod);
// Returns for how long a pod that is being deleted may go on; nullopt if it is not.
std::optional<base::Duration> deletion_grace(const kube::Pod& pod);

// By the CPU and memory of all containers, where a limit without a request is the request too.
// SOURCE: kubernetes.io "Pod Quality of Service Classes".
kube::QosClass qos_class(const kube::Pod& pod);

// Sum over containers, or the largest init container if that is more (as kubelet admits).
Resources pod_requests(const kube::Pod& pod);

// Below the node's cgroup root, with the cgroupfs driver's names: "kubepods/burstable/pod<uid>"
// (Guaranteed: "kubepods/pod<uid>"). SOURCE: freezer.md 3 "Paths".
std::string pod_cgroup(kube::QosClass qos, std::string_view uid);

// The facts that the downward API can tell about a pod that runs.
struct DownwardFacts {
  std::string pod_ip;
  std::string host_ip;
};

// A key of a ConfigMap or Secret; kNotFound says what is missing.
struct KeyLookup {
  enum class Kind { kConfigMap, kSecret };
  virtual ~KeyLookup() = default;
  virtual base::Result<std::string> find(Kind kind, const std::string& ns,
                                         const kube::KeySelector& key) = 0;
};

// NAME=value entries: `base_environment`, then the container's own, later ones winning, with
// $(NAME) references to earlier ones expanded as kubelet does. kInvalidArgument: a field path that
// is not supported; kNotFound: a ConfigMap or Secret is missing.
base::Result<std::vector<std::string>> container_environment(
    const kube::Pod& pod, const kube::Container& container, const DownwardFacts& facts,
    const std::vector<std::pair<std::string, std::string>>& base_environment, KeyLookup& lookup);

// Returns "$(NAME)" replaced by its value, "$$" by "$", an unknown name left as it is.
// SOURCE: kubernetes.io "Define Dependent Environment Variables".
std::string expand_references(std::string_view text,
                              const std::map<std::string, std::string>& variables);

}  // namespace devcluster
