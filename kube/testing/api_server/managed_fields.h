// metadata.managedFields as a real server writes it, as far as its size goes.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace devcluster {

// One entry for all fields but the status, and one for the status if it has any.
void add_managed_fields(nlohmann::json& object);

}  // namespace devcluster
