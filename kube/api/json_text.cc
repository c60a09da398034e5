#include "kube/api/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

// Texts are written here and not by the library's dump(), which passes each character through a
// state machine that checks UTF-8. That was a tenth of the instructions of a launch of 500 jobs.
// Nearly all strings are plain ASCII and can be copied as they are; rare characters are left to the
// library, so the result is the same byte for byte. Members come in the order of their names,
// because the library keeps them in a map: equal values have equal texts, and may be compared by
// them.
namespace kube {
namespace {

using nlohmann::json;

// Bytes that are not UTF-8 become U+FFFD; the library would throw otherwise, and texts from outside
// need not be UTF-8.
std::string library_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename Integer>
void append_integer(std::string& out, Integer value) {
  // The longest, -9223372036854775808, has 20 characters.
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

}  // namespace

// Nearly all texts need no escapes and have only ASCII; the library writes the others.
void append_compact(std::string& out, std::string_view text) {
  const bool is_plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  if (!is_plain) {
    out += library_text(std::string{text});
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

// Recursive, like the library's own: the depth is that of a value that was parsed or built already.
// In a list or an object each element writes the character before it, so only an empty one must
// write its first bracket itself.
void append_compact(std::string& out, const json& value) {
  switch (value.type()) {
    case json::value_t::object: {
      char before = '{';
      for (auto member = value.begin(); member != value.end(); ++member) {
        out += before;
        append_compact(out, std::string_view{member.key()});
        out += ':';
        append_compact(out, *member);
        before = ',';
      }
      out += value.empty() ? "{}" : "}";
      return;
    }
    case json::value_t::array: {
      char before = '[';
      for (const json& element : value) {
        out += before;
        append_compact(out, element);
        before = ',';
      }
      out += value.empty() ? "[]" : "]";
      return;
    }
    case json::value_t::string:
      return append_compact(out, std::string_view{value.get_ref<const std::string&>()});
    case json::value_t::number_integer:
      return append_integer(out, value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      return append_integer(out, value.get<std::uint64_t>());
    case json::value_t::null:
    case json::value_t::boolean:
    case json::value_t::number_float:
    case json::value_t::binary:
    case json::value_t::discarded:
      break;
  }
  // Numbers with a fraction: the library writes the shortest text that reads back as the same
  // number.
  out += library_text(value);
}

std::string compact_text(const nlohmann::json& value) {
  std::string out;
  append_compact(out, value);
  return out;
}

std::string text_at(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

nlohmann::json object_at(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : nlohmann::json::object();
}

}  // namespace kube
