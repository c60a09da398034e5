#include "cli/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace cli {
namespace {

// Words that YAML 1.1 readers take for something else than a string.
bool is_special(const std::string& text) {
  YAML::Node node{text};
  bool flag = false;
  double number = 0;
  return text.empty() || text == "~" || text == "null" || YAML::convert<bool>::decode(node, flag) ||
         YAML::convert<double>::decode(node, number) || text.find(':') != std::string::npos ||
         (text.front() >= '0' && text.front() <= '9');
}

void emit(YAML::Emitter& out, const nlohmann::json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, element] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, element);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const nlohmann::json& element : value) emit(out, element);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text.find('\n') != std::string::npos) {
      out << YAML::Literal << text;
    } else if (is_special(text)) {
      out << YAML::DoubleQuoted << text;
    } else {
      out << text;
    }
  } else {
    out << value.dump();
  }
}

}  // namespace

std::string yaml_text(const nlohmann::json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string{out.c_str()} + "\n";
}

}  // namespace cli
