// Reads and writes JSON that may be anything: the JSON library's own value() throws where a type is
// another one than the caller asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kube {

// Returns the string under `name`; empty where there is none or it is of another type.
std::string text_at(const nlohmann::json& object, std::string_view name);

// Returns the object under `name`; {} where there is none or it is of another type.
nlohmann::json object_at(const nlohmann::json& object, std::string_view name);

// Compact JSON, the same as the library's dump() with bytes replaced that are not UTF-8, in a
// fraction of its time.
std::string compact_text(const nlohmann::json& value);
// Does the same, behind what `out` has already.
void append_compact(std::string& out, const nlohmann::json& value);
void append_compact(std::string& out, std::string_view text);  // a string, with its quotes

}  // namespace kube
