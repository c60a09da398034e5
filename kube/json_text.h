// Internal to kube/: one look into an answer of the API server.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kube {

// The string under `name`; empty where there is none or it is of another type.
inline std::string text_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace kube
