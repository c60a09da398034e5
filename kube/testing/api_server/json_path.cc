#include "kube/testing/api_server/json_path.h"

#include <charconv>
#include <string>

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;

// Takes ".name" off the front; a backslash keeps the character that follows it.
std::string take_name(std::string_view& path) {
  std::string name;
  path.remove_prefix(1);
  while (!path.empty() && path.front() != '.' && path.front() != '[') {
    if (path.front() == '\\' && path.size() > 1) path.remove_prefix(1);
    name += path.front();
    path.remove_prefix(1);
  }
  return name;
}

// Without blanks and quotation marks around it.
std::string_view unquoted(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\'' || text.front() == '"')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\'' || text.back() == '"')) {
    text.remove_suffix(1);
  }
  return text;
}

// "@.type==\"Ready\"" against one item.
bool filter_matches(const json& item, std::string_view filter) {
  const std::size_t equals = filter.find("==");
  if (equals == std::string_view::npos || !filter.starts_with("@")) return false;
  const json* value = find_path(item, filter.substr(1, equals - 1));
  if (value == nullptr) return false;
  const std::string_view wanted = unquoted(filter.substr(equals + 2));
  return (value->is_string() ? value->get<std::string>() : value->dump()) == wanted;
}

// Returns the element in brackets: ?(filter), 'key', *, or an index. For [*] and a filter only the
// first match is taken: a cell shows one value.
const json* select(const json& value, std::string_view inside) {
  if (inside.starts_with("?(") && inside.ends_with(")")) {
    if (!value.is_array()) return nullptr;
    for (const json& item : value) {
      if (filter_matches(item, inside.substr(2, inside.size() - 3))) return &item;
    }
    return nullptr;
  }
  if (inside.starts_with('\'') || inside.starts_with('"')) {
    const std::string key{unquoted(inside)};
    return value.is_object() && value.contains(key) ? &value[key] : nullptr;
  }
  std::size_t index = 0;
  if (inside != "*") {
    const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
    if (error != std::errc{} || end != inside.data() + inside.size()) return nullptr;
  }
  return value.is_array() && index < value.size() ? &value[index] : nullptr;
}

// Returns the ']' that closes the '[' at the front, past quotes and parentheses.
std::size_t closing_bracket(std::string_view path) {
  char quote = 0;
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (quote != 0) {
      if (path[i] == quote) quote = 0;
    } else if (path[i] == '"' || path[i] == '\'') {
      quote = path[i];
    } else if (path[i] == ']') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

// Reads the part of kubectl's JSONPath that printer columns use: names, indexes, and filters for
// one value. nullptr if the path leads nowhere.
const json* find_path(const json& object, std::string_view path) {
  const json* at = &object;
  while (!path.empty() && at != nullptr) {
    if (path.front() == '.') {
      const std::string name = take_name(path);
      at = at->is_object() && at->contains(name) ? &(*at)[name] : nullptr;
    } else if (path.front() == '[') {
      const std::size_t end = closing_bracket(path);
      if (end == std::string_view::npos) return nullptr;
      at = select(*at, path.substr(1, end - 1));
      path.remove_prefix(end + 1);
    } else {
      return nullptr;
    }
  }
  return at;
}

}  // namespace devcluster
