// JSON from a request's body, and patches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"

namespace devcluster {

// Parses the object in a request's body of this content type (JSON, or protobuf as far as
// protobuf_json.h has it; 415 otherwise). Fields that stand twice go to `duplicates` as paths
// ("spec.nodes.min"); the last one counts. 400 when it is not JSON, or no object.
Outcome<nlohmann::json> parse_object(std::string_view body, std::string_view content_type,
                                     std::vector<std::string>& duplicates);

// Applies a patch of the given content type (merge patch, JSON patch) to `object`. 415 for the
// kinds that are not served (server-side apply; a strategic merge of a custom resource, which has
// no merge keys, or of lists), 400 or 422 for a patch that is none.
Outcome<nlohmann::json> apply_patch(const nlohmann::json& object, bool is_custom,
                                    std::string_view patch, std::string_view content_type,
                                    std::vector<std::string>& duplicates);

// Makes "application/json" of "application/json; charset=utf-8".
std::string media_type(std::string_view content_type);

}  // namespace devcluster
