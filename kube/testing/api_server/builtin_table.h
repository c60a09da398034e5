// The columns that kubectl shows of the built-in kinds.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/time.h"
#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

// Name first; kinds without columns of their own get Name and Age.
const std::vector<PrinterColumn>& builtin_columns(const ResourceType& type);

// Returns one cell per column.
nlohmann::json builtin_cells(const ResourceType& type, const nlohmann::json& object,
                             base::Instant now);

}  // namespace devcluster
