// JSON as YAML for people: block style, strings quoted only where they must be, several lines as
// a block.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cli {

std::string yaml_text(const nlohmann::json& value);

}  // namespace cli
