// URL paths of the API, percent-encoded. SOURCE: Kubernetes API concepts, "Resource URIs".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/api/meta.h"
#include "kube/api/resource_info.h"

namespace kube {

// Returns "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs"; ns "" = all, or cluster-scoped.
std::string collection_path(const ResourceInfo& resource, std::string_view ns);

// Returns "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs/myload".
std::string object_path(const ResourceInfo& resource, const ObjectKey& key);

// Returns "?a=b&c=d", or "" without parameters; empty values are left out.
std::string query_text(const std::vector<std::pair<std::string_view, std::string>>& parameters);

}  // namespace kube
