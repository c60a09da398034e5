// Names of products ("nvidia-a100-sxm4-80gb"), of which people say a word or some that stand
// together ("a100", "rtx8000" of "quadro-rtx-8000").
#pragma once

#include <cstddef>
#include <string_view>

namespace base {

inline bool is_word_separator(char c) {
  return c == '-' || c == '_' || c == ' ' || c == '.';
}

// Returns true if the words that are asked, separated or not and in any case, stand together in the
// product's name.
inline bool has_words(std::string_view product, std::string_view asked) {
  // Reads past separators. '\0' at the end.
  const auto next = [](std::string_view& text) {
    while (!text.empty() && is_word_separator(text.front())) text.remove_prefix(1);
    if (text.empty()) return '\0';
    const char c = text.front();
    text.remove_prefix(1);
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  // Returns true if the name begins with all that is asked, and a word ends there.
  const auto begins = [&](std::string_view name) {
    std::string_view rest = asked;
    while (const char wanted = next(rest)) {
      if (next(name) != wanted) return false;
    }
    return name.empty() || is_word_separator(name.front());
  };
  if (product == asked) return true;
  for (std::size_t at = 0; at < product.size(); ++at) {
    const bool begins_word = at == 0 || is_word_separator(product[at - 1]);
    if (begins_word && !is_word_separator(product[at]) && begins(product.substr(at))) return true;
  }
  return false;
}

}  // namespace base
