// Discovery, which kubectl asks for first: versions, groups and resources that are served.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

// Returns the document at /api, /apis, /api/v1, /apis/GROUP or /apis/GROUP/VERSION; nullopt if the
// path is another one or the group is not served. `aggregated`: the client asked for
// APIGroupDiscoveryList (v2) at /api or /apis.
std::optional<nlohmann::json> discovery_document(const ResourceRegistry& registry,
                                                 const std::vector<std::string>& segments,
                                                 bool aggregated);

// Returns true if an Accept header prefers the aggregated document.
bool wants_aggregated_discovery(std::string_view accept);

inline constexpr const char* kAggregatedDiscoveryType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// /version
nlohmann::json version_document();

}  // namespace devcluster
