#include "kube/testing/api_server/yaml_json.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include <yaml-cpp/yaml.h>
#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;

// kubectl's parser (sigs.k8s.io/yaml) has YAML 1.1's words for booleans: "no" is false and not a
// country. A quoted word is always a text. Integers before other numbers, so that large ones keep
// all their digits; they are unsigned where they can be, as in JSON that is parsed from text, so
// that two objects of the same content compare as equal. The look at the characters keeps
// from_chars from taking "inf" and "nan", which are texts in YAML.
json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nullptr;
  for (const char* word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (const char* word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  const char* const begin = text.data() + (text.front() == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto parsed = std::from_chars(begin, end, integer);
      parsed.ec == std::errc{} && parsed.ptr == end) {
    if (integer >= 0) return static_cast<std::uint64_t>(integer);
    return integer;
  }
  double number = 0;
  const bool numeric = text.find_first_of("0123456789") != std::string::npos &&
                       text.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (const auto parsed = std::from_chars(begin, end, number);
      numeric && parsed.ec == std::errc{} && parsed.ptr == end) {
    return number;
  }
  return text;
}

// Keys are texts in JSON, also where YAML has a number.
json to_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return nullptr;
    case YAML::NodeType::Scalar:
      return scalar(node);
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const YAML::Node& item : node) list.push_back(to_json(item));
      return list;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& entry : node) object[entry.first.Scalar()] = to_json(entry.second);
      return object;
    }
  }
  return nullptr;
}

}  // namespace

// Empty documents, as between two "---", are left out. The error names line and column from 1.
base::Result<std::vector<std::string>> yaml_documents(std::string_view text) {
  std::vector<std::string> documents;
  try {
    for (const YAML::Node& node : YAML::LoadAll(std::string{text})) {
      if (!node.IsNull()) documents.push_back(to_json(node).dump());
    }
  } catch (const YAML::Exception& error) {
    return base::invalid_argument("line " + std::to_string(error.mark.line + 1) + ", column " +
                                  std::to_string(error.mark.column + 1) + ": " + error.msg);
  }
  return documents;
}

base::Result<std::vector<std::string>> read_yaml_file(const std::string& path) {
  std::ifstream file{path};
  if (!file) return base::Error{base::Code::kNotFound, path + ": cannot be read"};
  std::ostringstream text;
  text << file.rdbuf();
  auto documents = yaml_documents(text.str());
  if (!documents.ok()) return documents.error().with_context(path);
  return documents;
}

}  // namespace devcluster
