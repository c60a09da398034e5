// Texts that authors choose, cut to what is read of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/cut_text.h"

namespace control {

// No name, UID or version that the API server takes is longer.
inline constexpr std::size_t kNameBytesMax = 253;

// Returns the beginning of a text, cut at a character and not within one: the API server would
// refuse a sentence that quotes half of one. In memory of its own: shortening a string in place
// keeps what it had.
inline std::string head(const std::string& text, std::size_t bytes_max = kNameBytesMax) {
  return std::string{base::head_of(text, bytes_max)};
}
inline std::optional<std::string> head(const std::optional<std::string>& text) {
  return text ? std::optional{head(*text)} : std::nullopt;
}

}  // namespace control
