// The part of kubectl's JSONPath that printer columns use: .a.b, ['a'], \. in names, [0], [*] and
// [?(@.x=="y")].
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace devcluster {

// Returns the first value at the path; null where there is none or the path is not understood. Not
// owned; valid as long as `object`.
const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path);

}  // namespace devcluster
