// The JSON types of the fields that this server reads: metadata of every kind, and of the built-in
// kinds, which have no schema here, what the server's rules and tables look at. Everything behind
// check_types() may take these types for granted.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"
#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

// Returns the first field with a wrong type, as 400. A null counts as absent and is removed, as
// decoding into Go's types does. Cost: O(object).
std::optional<ApiError> check_types(const ResourceType& type, nlohmann::json& object);

}  // namespace devcluster
