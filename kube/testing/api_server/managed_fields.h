// metadata.managedFields as a real server writes it, as far as its size goes.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace devcluster {

// Appends the list as text: one entry for all fields but the status, and one for the status if the
// object has any.
void append_managed_fields(std::string& out, const nlohmann::json& object,
                           std::string_view api_version);

}  // namespace devcluster
