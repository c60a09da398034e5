// A pod's status as kubelet writes it, and the Node object that kubelet registers: pure functions
// to JSON. SOURCE: kubernetes.io API reference, PodStatus and NodeStatus; times have whole seconds.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/time.h"
#include "e2e/devcluster/kubelet/pod_facts.h"
#include "e2e/devcluster/kubelet/pod_machine.h"

namespace devcluster {

// Returns "2026-01-01T00:00:00Z".
std::string rfc3339_seconds(base::Instant time);

// Merge patch for the status subresource.
nlohmann::json pod_status_patch(const PodMachine& pod, const DownwardFacts& facts);

struct NodeSpec {
  std::string name;
  kube::MilliCpu cpu{8000};
  std::int32_t sockets = 1;  // that its CPUs are spread over evenly
  kube::Bytes memory{std::int64_t{16} << 30};
  std::int32_t pods_max = 110;
  kube::Bytes disk{std::int64_t{64} << 30U};  // ephemeral storage: said, never measured
  std::map<std::string, std::string> labels;
  std::int32_t gpus = 0;  // of nvidia.com/gpu: said and counted, there are none
};

// Makes a Node that is Ready. Pods, processes of this machine, get addresses in 127.0.0.0/8.
nlohmann::json node_object(const NodeSpec& node, base::Instant now);

// Merge patch of the Ready condition: True with KubeletReady, or Unknown as the node lifecycle
// controller writes it when a kubelet has fallen silent.
nlohmann::json node_ready_patch(bool ready, base::Instant now);

}  // namespace devcluster
