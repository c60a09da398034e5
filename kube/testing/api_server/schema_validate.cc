// The judging half of Schema, in the sentences of k8s.io/kube-openapi and field.Error, which people
// and tests know from real API servers.
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"
#include "kube/testing/api_server/schema.h"
#include "kube/testing/api_server/schema_node.h"

namespace devcluster {
namespace {

using nlohmann::json;

// The most of an object or list in a sentence.
constexpr std::size_t kShownValueBytesMax = 256;

// Objects and lists are cut off: a sentence with a whole template in it cannot be read.
std::string shown(const json& value) {
  if (value.is_object() || value.is_array()) {
    const std::string text = value.dump();
    return text.size() <= kShownValueBytesMax ? text : text.substr(0, kShownValueBytesMax) + "…";
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Returns "3" and not "3.0", as Go's %v prints a float64 that is whole.
std::string number(double value) {
  json text = value == std::floor(value) && std::abs(value) < 1e15
                  ? json(static_cast<std::int64_t>(value))
                  : json(value);
  return text.dump();
}

// Code points, as Go's utf8.RuneCountInString counts.
std::size_t length_of(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++count;
  }
  return count;
}

// One pass over a value with its schema, depth first; it collects all causes, so that a user need
// not correct a manifest one mistake at a time.
class Validation {
 public:
  void check(const SchemaNode& node, const json& value, const std::string& path);
  std::vector<Cause> take() { return std::move(causes_); }

 private:
  void add(const char* reason, const std::string& path, std::string message) {
    causes_.push_back({reason, path, std::move(message)});
  }
  // Kubernetes says the path twice: as the field of the cause and within the sentence.
  void wrong(const std::string& path, const json& value, const std::string& rule) {
    add("FieldValueInvalid", path,
        "Invalid value: " + shown(value) + ": " + path + " in body " + rule);
  }
  bool check_type(const SchemaNode& node, const json& value, const std::string& path);
  void check_string(const SchemaNode& node, const json& value, const std::string& path);
  void check_number(const SchemaNode& node, const json& value, const std::string& path);
  void check_array(const SchemaNode& node, const json& value, const std::string& path);
  void check_unique(const SchemaNode& node, const json& value, const std::string& path);
  void check_object(const SchemaNode& node, const json& value, const std::string& path);
  void check_enum(const SchemaNode& node, const json& value, const std::string& path);

  std::vector<Cause> causes_;
};

// The names of OpenAPI.
std::string type_name(const json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  if (value.is_array()) return "array";
  return "object";
}

// "integer" comes last: it is the only name that is left.
bool has_type(const std::string& type, const json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  if (value.is_number_float()) {  // 1.0 is an integer
    const double number_value = value.get<double>();
    return number_value == std::floor(number_value);
  }
  return value.is_number_integer();
}

// Returns false if the other checks have nothing to say about the value: it is null where null is
// allowed, or of the wrong type, which is the only error that is reported then.
bool Validation::check_type(const SchemaNode& node, const json& value, const std::string& path) {
  if (value.is_null() && node.nullable) return false;
  if (node.int_or_string) {
    if (value.is_number_integer() || value.is_string()) return true;
    add("FieldValueTypeInvalid", path,
        "Invalid value: \"" + type_name(value) + "\": " + path +
            " in body must be of type integer,string: \"" + type_name(value) + "\"");
    return false;
  }
  if (node.type.empty() || has_type(node.type, value)) return true;
  add("FieldValueTypeInvalid", path,
      "Invalid value: \"" + type_name(value) + "\": " + path + " in body must be of type " +
          node.type + ": \"" + type_name(value) + "\"");
  return false;
}

// Enums are compared as JSON, so 1 and "1" differ.
void Validation::check_enum(const SchemaNode& node, const json& value, const std::string& path) {
  if (node.enumeration.empty()) return;
  std::string supported;
  for (const json& allowed : node.enumeration) {
    if (allowed == value) return;
    supported += (supported.empty() ? "" : ", ") + shown(allowed);
  }
  add("FieldValueNotSupported", path,
      "Unsupported value: " + shown(value) + ": supported values: " + supported);
}

// "Too long" says bytes although code points are counted: these are the words of a real server.
void Validation::check_string(const SchemaNode& node, const json& value, const std::string& path) {
  const auto& text = value.get_ref<const std::string&>();
  const std::size_t length = length_of(text);
  if (node.length_max && length > *node.length_max) {
    add("FieldValueTooLong", path,
        "Too long: may not be more than " + std::to_string(*node.length_max) + " bytes");
    return;  // Patterns are not tried on what is too long.
  }
  if (node.length_min && length < *node.length_min) {
    wrong(path, value, "should be at least " + std::to_string(*node.length_min) + " chars long");
  }
  if (node.pattern_text && !std::regex_search(text, node.pattern)) {
    wrong(path, value, "should match '" + *node.pattern_text + "'");
  }
  if (node.format == "date-time" && !kube::parse_instant(text).ok()) {
    wrong(path, value, "must be of type date-time: " + shown(value));
  }
}

// Compares doubles, as Go does: bounds of schemas are far below 2^53.
void Validation::check_number(const SchemaNode& node, const json& value, const std::string& path) {
  const double figure = value.get<double>();
  if (node.minimum &&
      (figure < *node.minimum || (node.exclusive_minimum && figure == *node.minimum))) {
    wrong(path, value,
          std::string{"should be greater than "} + (node.exclusive_minimum ? "" : "or equal to ") +
              number(*node.minimum));
  }
  if (node.maximum &&
      (figure > *node.maximum || (node.exclusive_maximum && figure == *node.maximum))) {
    wrong(path, value,
          std::string{"should be less than "} + (node.exclusive_maximum ? "" : "or equal to ") +
              number(*node.maximum));
  }
  constexpr double kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  if (node.format == "int32" && (figure < kLeast || figure > kMost)) {
    wrong(path, value, "must be of type int32: " + shown(value));
  }
}

// Lists of type set hold no value twice, lists of type map no two items with the same keys.
// Compared as text, which is canonical because objects are sorted by key.
void Validation::check_unique(const SchemaNode& node, const json& value, const std::string& path) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    json key = value[i];
    if (node.list_type == "map") {
      key = json::object();
      if (!value[i].is_object()) continue;
      for (const std::string& name : node.list_map_keys) {
        key[name] = value[i].contains(name) ? value[i][name] : json();
      }
    }
    if (!seen.insert(key.dump()).second) {
      add("FieldValueDuplicate", path + "[" + std::to_string(i) + "]",
          "Duplicate value: " + shown(key));
    }
  }
}

// A list that is too long is not looked into: its sentence must not be followed by one for each
// item.
void Validation::check_array(const SchemaNode& node, const json& value, const std::string& path) {
  if (node.items_max && value.size() > *node.items_max) {
    add("FieldValueTooMany", path,
        "Too many: " + std::to_string(value.size()) + ": must have at most " +
            std::to_string(*node.items_max) + " items");
    return;
  }
  if (node.items_min && value.size() < *node.items_min) {
    wrong(path, value.size(), "should have at least " + std::to_string(*node.items_min) + " items");
  }
  if (node.list_type == "set" || node.list_type == "map") check_unique(node, value, path);
  for (std::size_t i = 0; i < value.size(); ++i) {
    check(*node.items, value[i], path + "[" + std::to_string(i) + "]");
  }
}

// Unknown fields are not an error here. They were pruned before, with a warning or an error where
// one was asked for.
void Validation::check_object(const SchemaNode& node, const json& value, const std::string& path) {
  if (node.properties_max && value.size() > *node.properties_max) {
    add("FieldValueTooMany", path,
        "Too many: " + std::to_string(value.size()) + ": must have at most " +
            std::to_string(*node.properties_max) + " items");
  }
  if (node.properties_min && value.size() < *node.properties_min) {
    wrong(path, value.size(),
          "should have at least " + std::to_string(*node.properties_min) + " properties");
  }
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const std::string& name : node.required) {
    if (!value.contains(name)) add("FieldValueRequired", prefix + name, "Required value");
  }
  for (const auto& [name, child] : value.items()) {
    // Checked by validate_metadata and adopt_identity, not by the schema of a CRD.
    if (path.empty() && (name == "apiVersion" || name == "kind" || name == "metadata")) continue;
    const auto known = node.properties.find(name);
    if (known != node.properties.end()) {
      check(known->second, child, prefix + name);
    } else if (node.additional_properties) {
      check(*node.additional_properties, child, prefix + name);
    }
  }
}

// The type first; if it is wrong, the other rules have nothing to say.
void Validation::check(const SchemaNode& node, const json& value, const std::string& path) {
  if (!check_type(node, value, path)) return;
  check_enum(node, value, path);
  if (value.is_string())
    check_string(node, value, path);
  else if (value.is_number())
    check_number(node, value, path);
  else if (value.is_array() && node.items)
    check_array(node, value, path);
  else if (value.is_object())
    check_object(node, value, path);
}

}  // namespace

// Fields of the causes begin at the top ("spec.tasks[0].count"), without a dot in front.
std::vector<Cause> Schema::validate(const json& object) const {
  Validation validation;
  validation.check(*root_, object, "");
  return validation.take();
}

// For a subresource: a write of the status is not refused for a spec that a newer schema forbids.
std::vector<Cause> Schema::validate_field(const std::string& name, const json& object) const {
  const auto field = root_->properties.find(name);
  if (field == root_->properties.end() || !object.contains(name)) return {};
  Validation validation;
  validation.check(field->second, object[name], "");
  std::vector<Cause> causes = validation.take();
  for (Cause& cause : causes) {
    cause.field = name + (cause.field.empty() ? "" : ".") + cause.field;
  }
  return causes;
}

}  // namespace devcluster
