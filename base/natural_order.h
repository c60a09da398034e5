// The order of names that contain numbers.
#pragma once

#include <cstddef>
#include <string_view>

namespace base {
namespace natural_order {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the end of the run of digits that begins at `from`.
inline std::size_t digits_end(std::string_view text, std::size_t from) {
  while (from < text.size() && is_digit(text[from])) ++from;
  return from;
}

// Returns the digits of the number itself, so that two numbers of any length compare by length
// first and then as text, without overflow.
inline std::string_view without_leading_zeros(std::string_view digits) {
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? std::string_view{} : digits.substr(first);
}

}  // namespace natural_order

// Natural sort: runs of digits compare as numbers (n9 < n10), everything else as bytes. A strict
// total order: equal numbers with different leading zeros are ordered by the bytes.
inline bool natural_less(std::string_view a, std::string_view b) {
  using natural_order::digits_end;
  using natural_order::is_digit;
  using natural_order::without_leading_zeros;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    // Two numbers: without leading zeros, the longer one is greater.
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::size_t i_end = digits_end(a, i);
      const std::size_t j_end = digits_end(b, j);
      const std::string_view x = without_leading_zeros(a.substr(i, i_end - i));
      const std::string_view y = without_leading_zeros(b.substr(j, j_end - j));
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = i_end;
      j = j_end;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  // The text that ends first comes first: n1 before n1-ib.
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  // Equal, or different in leading zeros only: n01 before n1.
  return a < b;
}

}  // namespace base
