// The parsed form of one level of a structural schema; shared by schema.cc and schema_validate.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace devcluster {

struct SchemaNode {
  std::string type;  // empty: any (preserve unknown fields) or int-or-string
  std::string format;
  bool nullable = false;
  bool preserve_unknown = false;
  bool int_or_string = false;
  bool embedded_resource = false;
  std::map<std::string, SchemaNode> properties;
  std::unique_ptr<SchemaNode> additional_properties;  // null: none are allowed
  bool additional_properties_any = false;
  std::unique_ptr<SchemaNode> items;
  std::vector<std::string> required;
  std::vector<nlohmann::json> enumeration;
  std::optional<double> minimum, maximum;
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::optional<std::size_t> length_min, length_max, items_min, items_max, properties_min,
      properties_max;
  std::optional<std::string> pattern_text;
  std::regex pattern;
  std::string list_type;  // atomic, set, map
  std::vector<std::string> list_map_keys;
  std::unique_ptr<nlohmann::json> default_value;  // null: none
};

}  // namespace devcluster
