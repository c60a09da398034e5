#include "kube/testing/api_server/schema.h"

#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/testing/api_server/schema_node.h"

// The parsing half of Schema, pruning and defaulting. A structural schema gives every field a type,
// at any depth, so one tree of SchemaNodes can do all three jobs: validate, prune what no node
// describes, and fill in defaults. SOURCE: Kubernetes, "Extend the Kubernetes API with
// CustomResourceDefinitions", structural schemas, pruning, defaulting.
namespace devcluster {
namespace {

using nlohmann::json;

// Parsing, pruning and defaulting recurse over the schema: this bounds the stack, whatever a
// definition says.
constexpr int kSchemaDepthMax = 64;

// The path is as ".spec.tasks[].count"; "{}" stands for the values of a map.
base::Error not_structural(const std::string& path, const std::string& why) {
  return base::invalid_argument("schema at " + (path.empty() ? "the top" : path) + ": " + why);
}

// Keywords that carry no meaning for validation here. additionalProperties is read by
// parse_children; the four combinations may only restrict values in a structural schema, and are
// not evaluated.
bool is_annotation(const std::string& keyword) {
  static const std::set<std::string> kAnnotations = {"description",
                                                     "title",
                                                     "example",
                                                     "externalDocs",
                                                     "x-kubernetes-validations",
                                                     "x-kubernetes-map-type",
                                                     "additionalProperties",
                                                     "anyOf",
                                                     "oneOf",
                                                     "allOf",
                                                     "not"};
  return kAnnotations.contains(keyword);
}

base::Result<SchemaNode> parse_node(const json& source, const std::string& path, int depth);

// Lengths and counts. A negative bound or a fraction is a mistake in the definition, and clamping
// it would hide the mistake.
base::Status parse_size(const json& value, std::optional<std::size_t>& size,
                        const std::string& path) {
  if (!value.is_number_unsigned()) return not_structural(path, "a bound must be a whole number");
  size = value.get<std::size_t>();
  return {};
}

// Compiled once. Kubernetes' patterns are RE2, of which ECMAScript is close enough for those of our
// CRDs.
base::Status parse_pattern(const json& value, SchemaNode& node, const std::string& path) {
  if (!value.is_string()) return not_structural(path, "pattern must be a string");
  node.pattern_text = value.get<std::string>();
  try {
    node.pattern = std::regex{*node.pattern_text, std::regex::ECMAScript | std::regex::optimize};
  } catch (const std::regex_error& error) {
    return not_structural(path, "pattern " + *node.pattern_text + ": " + error.what());
  }
  return {};
}

// Each property is a schema of its own, one level further down.
base::Status parse_properties(const json& value, SchemaNode& node, const std::string& path,
                              int depth) {
  for (const auto& [name, child] : value.items()) {
    auto parsed = parse_node(child, path + "." + name, depth + 1);
    if (!parsed.ok()) return parsed.error();
    node.properties.emplace(name, std::move(*parsed));
  }
  return {};
}

// additionalProperties and items.
base::Status parse_children(const json& source, SchemaNode& node, const std::string& path,
                            int depth) {
  if (source.contains("additionalProperties")) {
    const json& value = source["additionalProperties"];
    if (value.is_boolean()) {
      node.additional_properties_any = value.get<bool>();
    } else {
      auto parsed = parse_node(value, path + "{}", depth + 1);
      if (!parsed.ok()) return parsed.error();
      node.additional_properties = std::make_unique<SchemaNode>(std::move(*parsed));
    }
  }
  if (source.contains("items")) {
    auto parsed = parse_node(source["items"], path + "[]", depth + 1);
    if (!parsed.ok()) return parsed.error();
    node.items = std::make_unique<SchemaNode>(std::move(*parsed));
  }
  return {};
}

// One branch for each keyword of a structural schema. An unknown keyword is refused rather than
// ignored: a rule of a CRD that this server does not know would be a rule that the tests do not
// see.
base::Status parse_keyword(const std::string& keyword, const json& value, SchemaNode& node,
                           const std::string& path, int depth) {
  if (keyword == "type")
    node.type = value.get<std::string>();
  else if (keyword == "format")
    node.format = value.get<std::string>();
  else if (keyword == "nullable")
    node.nullable = value.get<bool>();
  else if (keyword == "x-kubernetes-preserve-unknown-fields")
    node.preserve_unknown = value.get<bool>();
  else if (keyword == "x-kubernetes-int-or-string")
    node.int_or_string = value.get<bool>();
  else if (keyword == "x-kubernetes-embedded-resource")
    node.embedded_resource = value.get<bool>();
  else if (keyword == "properties")
    return parse_properties(value, node, path, depth);
  else if (keyword == "items")
    return {};
  else if (keyword == "required")
    node.required = value.get<std::vector<std::string>>();
  else if (keyword == "enum")
    node.enumeration = value.get<std::vector<json>>();
  else if (keyword == "minimum")
    node.minimum = value.get<double>();
  else if (keyword == "maximum")
    node.maximum = value.get<double>();
  else if (keyword == "exclusiveMinimum")
    node.exclusive_minimum = value.get<bool>();
  else if (keyword == "exclusiveMaximum")
    node.exclusive_maximum = value.get<bool>();
  else if (keyword == "minLength")
    return parse_size(value, node.length_min, path);
  else if (keyword == "maxLength")
    return parse_size(value, node.length_max, path);
  else if (keyword == "minItems")
    return parse_size(value, node.items_min, path);
  else if (keyword == "maxItems")
    return parse_size(value, node.items_max, path);
  else if (keyword == "minProperties")
    return parse_size(value, node.properties_min, path);
  else if (keyword == "maxProperties")
    return parse_size(value, node.properties_max, path);
  else if (keyword == "pattern")
    return parse_pattern(value, node, path);
  else if (keyword == "x-kubernetes-list-type")
    node.list_type = value.get<std::string>();
  else if (keyword == "x-kubernetes-list-map-keys")
    node.list_map_keys = value.get<std::vector<std::string>>();
  else if (keyword == "default")
    node.default_value = std::make_unique<json>(value);
  else if (!is_annotation(keyword))
    return not_structural(path, "unknown keyword " + keyword);
  return {};
}

// A subset of what kube-apiserver demands of a CRD's schema: enough to refuse one that it would
// refuse for these reasons.
base::Status check_structural(const SchemaNode& node, const std::string& path) {
  static const std::set<std::string> kTypes = {"object",  "array",  "string",
                                               "integer", "number", "boolean"};
  if (node.type.empty() && !node.int_or_string && !node.preserve_unknown) {
    return not_structural(path, "type: Required value: must not be empty for specified fields");
  }
  if (!node.type.empty() && !kTypes.contains(node.type)) {
    return not_structural(path, "unknown type " + node.type);
  }
  if (node.type == "array" && !node.items) {
    return not_structural(path, "items: Required value: must be specified for an array");
  }
  if (node.list_type == "map" && node.list_map_keys.empty()) {
    return not_structural(path, "x-kubernetes-list-map-keys: Required value for list type map");
  }
  return {};
}

// 1. the keywords one by one, in any order, 2. the schemas of the values of maps and lists, 3. what
//    the keywords demand of each other.
// A value of the wrong JSON type throws in parse_keyword(); it is the definition's mistake and not
// this program's, so it becomes an error with its path.
base::Result<SchemaNode> parse_node(const json& source, const std::string& path, int depth) {
  if (!source.is_object()) return not_structural(path, "must be an object");
  if (depth > kSchemaDepthMax) return not_structural(path, "nested too deeply");
  SchemaNode node;
  for (const auto& [keyword, value] : source.items()) {
    try {
      const base::Status status = parse_keyword(keyword, value, node, path, depth);
      if (!status.ok()) return status.error();
    } catch (const json::exception& error) {
      return not_structural(path, keyword + ": " + error.what());
    }
  }
  base::Status status = parse_children(source, node, path, depth);
  if (status.ok()) status = check_structural(node, path);
  if (!status.ok()) return status.error();
  return node;
}

// Removes what the schema does not know and names its path, as kube-apiserver prunes unknown fields
// of custom resources. A field counts as known if the schema names it, or gives a schema for all
// values of the map, or lets unknown fields be; the paths are what kubectl warns of.
void prune_node(const SchemaNode& node, json& value, const std::string& path,
                std::vector<std::string>& removed) {
  if (value.is_array() && node.items) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      prune_node(*node.items, value[i], path + "[" + std::to_string(i) + "]", removed);
    }
    return;
  }
  if (!value.is_object()) return;
  for (auto field = value.begin(); field != value.end();) {
    const std::string child_path = path.empty() ? field.key() : path + "." + field.key();
    const auto known = node.properties.find(field.key());
    // These three are every object's own, whether or not the schema names them.
    const bool standard =
        (path.empty() || node.embedded_resource) &&
        (field.key() == "apiVersion" || field.key() == "kind" || field.key() == "metadata");
    if (standard) {
      ++field;
    } else if (known != node.properties.end()) {
      prune_node(known->second, *field, child_path, removed);
      ++field;
    } else if (node.additional_properties) {
      prune_node(*node.additional_properties, *field, child_path, removed);
      ++field;
    } else if (node.preserve_unknown || node.additional_properties_any) {
      ++field;
    } else {
      removed.push_back(child_path);
      field = value.erase(field);
    }
  }
}

// Goes from the outside in, as the API server does. It runs on every write: a field with a default
// that an update leaves out has it again afterwards.
void default_node(const SchemaNode& node, json& value) {
  if (value.is_array() && node.items) {
    for (json& item : value) default_node(*node.items, item);
  }
  if (!value.is_object()) return;
  for (const auto& [name, child] : node.properties) {
    const auto present = value.find(name);
    // A null of a field that may not be null counts as absent: it gets the default.
    if (child.default_value &&
        (present == value.end() || (present->is_null() && !child.nullable))) {
      value[name] = *child.default_value;
    }
    // Into the default as well: an object that is there only by default may have defaults inside.
    const auto field = value.find(name);
    if (field != value.end()) default_node(child, *field);
  }
  if (node.additional_properties) {
    for (auto& [name, child] : value.items()) {
      if (!node.properties.contains(name)) default_node(*node.additional_properties, child);
    }
  }
}

}  // namespace

base::Result<std::shared_ptr<const Schema>> Schema::parse(const json& open_api) {
  auto root = parse_node(open_api, "", 0);
  if (!root.ok()) return root.error();
  if (root->type != "object") return not_structural("", "type must be object");
  return std::shared_ptr<const Schema>{new Schema{std::make_unique<SchemaNode>(std::move(*root))}};
}

Schema::Schema(std::unique_ptr<SchemaNode> root) : root_{std::move(root)} {}
Schema::~Schema() = default;

std::vector<std::string> Schema::prune(json& object) const {
  std::vector<std::string> removed;
  prune_node(*root_, object, "", removed);
  return removed;
}

void Schema::apply_defaults(json& object) const {
  default_node(*root_, object);
}

}  // namespace devcluster
