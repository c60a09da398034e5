// Sets of small numbers as people and the kernel write them: "0-3,8".
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace base {

// In the order in which they are written; "" is the empty list. nullopt if the text is not such a
// list, names a number above `max`, or goes on after more than `max` numbers, of which some must
// come twice by then. So the list has at most 2 × max + 1 numbers.
inline std::optional<std::vector<int>> parse_number_list(std::string_view text, int max) {
  // Digits alone. By itself from_chars() would accept a minus, and text behind the digits.
  const auto parse = [max](std::string_view digits) -> std::optional<int> {
    int number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc{} || stopped != end || number < 0 || number > max) return std::nullopt;
    return number;
  };
  std::vector<int> numbers;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::optional<int> first = parse(range.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    // Checked before a range is added, so that a text of a few bytes cannot ask for much memory.
    if (numbers.size() > static_cast<std::size_t>(max)) return std::nullopt;
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;  // "0,"
  }
  return numbers;
}

// In this order; neighbors that ascend by one become a range. The inverse of the function above.
inline std::string format_number_list(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[first]);
    if (last > first) text += "-" + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace base
