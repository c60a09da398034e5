#include "kube/json_text.h"

#include <nlohmann/json.hpp>

namespace kube {

std::string text_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace kube
