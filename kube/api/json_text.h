// Looks into JSON that may be anything: the JSON library's own value() throws where a type is
// another one than the caller asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kube {

// The string under `name`; empty where there is none or it is of another type.
std::string text_at(const nlohmann::json& object, std::string_view name);

// The object under `name`; {} where there is none or it is of another type.
nlohmann::json object_at(const nlohmann::json& object, std::string_view name);

}  // namespace kube
