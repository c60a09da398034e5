// JSON merge patches. SOURCE: RFC 7386.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace kube {

// Returns the patch that makes `to` of `from`: changed fields, null for removed ones; {} when
// equal. Lists are replaced as a whole. A field that is null in `to` counts as removed.
nlohmann::json merge_patch(const nlohmann::json& from, const nlohmann::json& to);

}  // namespace kube
