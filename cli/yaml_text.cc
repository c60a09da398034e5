#include "cli/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cli {
namespace {

// Words that YAML 1.1 readers take for something else than a string: null, booleans, numbers, maps
// ("a: b"), and, by the digit in front, dates and times ("2026-01-01", "12:30:00"). Too many texts
// are quoted by this rather than too few.
bool is_special(const std::string& text) {
  YAML::Node node{text};
  bool flag = false;
  double number = 0;
  return text.empty() || text == "~" || text == "null" || YAML::convert<bool>::decode(node, flag) ||
         YAML::convert<double>::decode(node, number) || text.find(':') != std::string::npos ||
         (text.front() >= '0' && text.front() <= '9');
}

// Returns true if the text is read back from a block (|) as it is, but for line breaks at its end.
// A block is as far indented as its first line that is not empty, so that line must not begin with
// a blank; and control characters need escapes, which a block has none of.
bool fits_a_block(const std::string& text) {
  const std::size_t first = text.find_first_not_of('\n');
  if (first == std::string::npos || text[first] == ' ') return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20U && c != '\n' && c != '\t') || code == 0x7FU;
  });
}

// Walks the tree. Strings are the one delicate kind: a reader must not take "true" or "1.5" for
// something else. Numbers and booleans are written as JSON writes them, which is YAML, too.
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
    const bool has_lines = text.find('\n') != std::string::npos;
    if (has_lines && fits_a_block(text)) {
      out << YAML::Literal << text;
      // Escapes of a double-quoted text keep what a block cannot: control characters, a first
      // blank.
    } else if (has_lines || is_special(text)) {
      out << YAML::DoubleQuoted << text;
    } else {
      out << text;
    }
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();
  }
}

}  // namespace

// Keys in the order of the JSON, which is alphabetical.
std::string yaml_text(const nlohmann::json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string{out.c_str()} + "\n";
}

}  // namespace cli
