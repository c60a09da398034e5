#include "kube/api/json_text.h"

#include <nlohmann/json.hpp>

namespace kube {

std::string text_at(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

nlohmann::json object_at(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : nlohmann::json::object();
}

}  // namespace kube
