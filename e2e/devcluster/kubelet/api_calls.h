// The few API calls of the process kubelet, each one request. Errors carry the server's sentence.
// Thread-safe as far as the transport is.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "e2e/devcluster/kubelet/pod_facts.h"
#include "kube/transport.h"

namespace devcluster {

base::Status create_or_adopt_node(kube::Transport& transport, const nlohmann::json& node);
base::Status patch_node_status(kube::Transport& transport, const std::string& node,
                               const nlohmann::json& patch);
base::Status patch_pod_status(kube::Transport& transport, const PodSpec& pod,
                              const nlohmann::json& patch);
// Grace period 0, if it is still the pod with this UID.
base::Status delete_pod_now(kube::Transport& transport, const PodSpec& pod);
base::Status create_pod_event(kube::Transport& transport, const PodSpec& pod,
                              const std::string& reason, const std::string& message,
                              base::Instant now);

// The grace period of a pod that is being deleted.
std::optional<base::Duration> deletion_grace(const nlohmann::json& pod);

class ApiKeyLookup final : public KeyLookup {
 public:
  explicit ApiKeyLookup(kube::Transport& transport) : transport_{transport} {}
  base::Result<std::string> find(EnvVar::Source source, const std::string& namespace_name,
                                 const std::string& object, const std::string& key) override;

 private:
  kube::Transport& transport_;
};

}  // namespace devcluster
