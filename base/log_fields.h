// The fields of a log line: key=value pairs, in the one form in which programs and people can take
// them apart again, whatever text of users they quote.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace base {

// Returns the value as it stands behind "key=": as it is, or in double quotes if that is not one
// word of plain characters. In quotes, " and \ have a backslash before them, and control characters
// are \n, \r, \t or \xNN, so that no value ends its line or looks like another field.
inline std::string log_value(std::string_view value) {
  const auto is_plain = [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '=';
  };
  if (!value.empty() && std::ranges::all_of(value, is_plain)) return std::string{value};
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      ((out += "\\x") += kHex[byte >> 4U]) += kHex[byte & 0xfU];
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct LogField {
  LogField(std::string_view of, std::string text) : key{of}, value{std::move(text)} {}
  LogField(std::string_view of, std::string_view text) : key{of}, value{text} {}
  LogField(std::string_view of, const char* text) : key{of}, value{text} {}
  LogField(std::string_view of, bool flag) : key{of}, value{flag ? "true" : "false"} {}
  template <std::integral Number>
  LogField(std::string_view of, Number number) : key{of}, value{std::to_string(number)} {}

  std::string_view key;  // a literal
  std::string value;
};
using LogFields = std::vector<LogField>;

// Returns "node=n12 error=\"connection refused\"".
inline std::string to_text(const LogFields& fields) {
  std::string out;
  for (const LogField& field : fields) {
    if (!out.empty()) out += ' ';
    ((out += field.key) += '=') += log_value(field.value);
  }
  return out;
}

}  // namespace base
