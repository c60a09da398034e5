// The parts of a Node that we use. Change Nodes by merge patch only: encoding loses the rest.
// SOURCE: k8s.io/api core/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/meta.h"
#include "kube/api/quantity.h"

namespace kube {

struct Taint {
  std::string key{};
  std::string value{};
  std::string effect{};  // NoSchedule | PreferNoSchedule | NoExecute
  std::optional<base::Instant> time_added{};

  friend bool operator==(const Taint&, const Taint&) = default;
};

struct NodeSpec {
  bool unschedulable = false;
  std::vector<Taint> taints{};

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

struct NodeAddress {
  std::string type{};
  std::string address{};

  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct NodeSystemInfo {
  std::string machine_id{};
  std::string boot_id{};
  std::string kernel_version{};
  std::string os_image{};
  std::string container_runtime_version{};
  std::string kubelet_version{};
  std::string operating_system{};
  std::string architecture{};

  friend bool operator==(const NodeSystemInfo&, const NodeSystemInfo&) = default;
};

struct NodeStatus {
  ResourceList capacity{};
  ResourceList allocatable{};
  Conditions conditions{};
  std::vector<NodeAddress> addresses{};
  NodeSystemInfo node_info{};

  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

struct Node {
  static constexpr ResourceInfo kResource{"", "v1", "nodes", "Node", false};

  ObjectMeta metadata{};
  NodeSpec spec{};
  NodeStatus status{};

  friend bool operator==(const Node&, const Node&) = default;
};

template <>
base::Result<Node> decode<Node>(const JsonView& object);
template <>
const KnownFields& known_fields<Node>();
nlohmann::json encode(const Node& node);

}  // namespace kube
