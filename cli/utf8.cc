#include "cli/utf8.h"

#include <algorithm>

namespace cli {
namespace {

// Returns the length of the character at the beginning of `text`; 0 if it is not valid. The first
// byte says how many continuation bytes (10xxxxxx) follow, and the second one's range excludes what
// could be written shorter, surrogates, and what is above U+10FFFF.
// SOURCE: The Unicode Standard, "Well-Formed UTF-8 Byte Sequences" (its table 3-7).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80U) return 1;
  if (first < 0xC2U || first > 0xF4U) return 0;
  // 0xC0 and 0xC1, which begin only what could be written in one byte, were refused above.
  const std::size_t length = first < 0xE0U ? 2 : first < 0xF0U ? 3 : 4;
  if (text.size() < length) return 0;
  const unsigned char low = first == 0xE0U ? 0xA0U : first == 0xF0U ? 0x90U : 0x80U;
  const unsigned char high = first == 0xEDU ? 0x9FU : first == 0xF4U ? 0x8FU : 0xBFU;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80U || byte(i) > 0xBFU) return 0;
  }
  return length;
}

}  // namespace

// Returns the number of the first line, from 1, that has a byte which is not UTF-8. Lines are only
// counted if there is one.
std::optional<std::size_t> line_that_is_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) {
      const std::string_view before = text.substr(0, at);
      return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace cli
