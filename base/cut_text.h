// Shortens text that others have written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

// Returns the first bytes of `text`, at most `bytes_max`, that end where a UTF-8 character ends.
inline std::string_view head_of(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  // 10xxxxxx is a byte within a character: a cut before it would split the character.
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (bytes_max > 0 && continues(text[bytes_max])) --bytes_max;
  return text.substr(0, bytes_max);
}

// Returns the text, or its beginning and three dots if it is longer than `bytes_max`. Shortening
// the result again changes nothing. REQUIRES: bytes_max >= 3.
inline std::string shortened(std::string text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  constexpr std::string_view kDots = "...";
  text.resize(head_of(text, bytes_max - kDots.size()).size());
  return text.append(kDots);
}

}  // namespace base
