// `kubectl apply` for our own examples: YAML documents from a file, created or, where they exist,
// merged into the object. Field validation is strict.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/transport.h"

namespace devcluster {

// Returns the file's documents. The error names the file.
base::Result<std::vector<nlohmann::json>> read_manifests(const std::string& path);

// Returns the server's sentence when it refuses.
base::Status apply_object(kube::Transport& transport, const nlohmann::json& object);

// Returns the path of objects of its kind and namespace:
// "/apis/kubegang.io/v1alpha1/namespaces/default/jobs".
std::string collection_path(const nlohmann::json& object);

// Makes one request; returns the answer's body, or its status as an error, with its sentence.
base::Result<nlohmann::json> call_api(kube::Transport& transport, kube::Method method,
                                      const std::string& path, const nlohmann::json& body);
base::Result<nlohmann::json> get_api(kube::Transport& transport, const std::string& path);

}  // namespace devcluster
