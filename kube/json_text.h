// Internal to kube/: one look into an answer of the API server.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kube {

// The string under `name`; empty where there is none or it is of another type.
std::string text_at(const nlohmann::json& object, const char* name);

}  // namespace kube
