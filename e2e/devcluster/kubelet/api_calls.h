// The few API calls of the process kubelet, each one request. Errors carry the server's sentence.
// Thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "e2e/devcluster/kubelet/pod_facts.h"
#include "kube/client.h"

namespace devcluster {

base::Status create_or_adopt_node(const kube::Client& client, const nlohmann::json& node);
// kConflict if it is no longer the pod with this UID.
base::Status patch_pod_status(const kube::Client& client, const kube::Pod& pod,
                              const nlohmann::json& patch);
// Grace period 0. kNotFound if it is no longer the pod with this UID.
base::Status delete_pod_now(const kube::Client& client, const kube::Pod& pod);
base::Status create_pod_event(const kube::Client& client, const kube::Pod& pod,
                              const std::string& reason, const std::string& message,
                              base::Instant now);

class ApiKeyLookup final : public KeyLookup {
 public:
  explicit ApiKeyLookup(const kube::Client& client) : client_{client} {}
  base::Result<std::string> find(Kind kind, const std::string& ns,
                                 const kube::KeySelector& key) override;

 private:
  const kube::Client& client_;
};

}  // namespace devcluster
