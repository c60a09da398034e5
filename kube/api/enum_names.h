// The API's spelling of an enumeration stands beside it, as a constexpr table that `names_of`
// returns; to_string and parse_enum work for each enumeration that has one.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kube {

template <typename E>
using EnumName = std::pair<E, std::string_view>;

template <typename E>
concept NamedEnum = std::is_enum_v<E> && requires {
  names_of(std::type_identity<E>{});
};

// Returns the name in the API ("OverSubscribe").
template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  for (const auto& [candidate, name] : names_of(std::type_identity<E>{})) {
    if (candidate == value) return name;
  }
  return "Unknown";
}

// Exact spelling, as the API has it; nothing for another one.
template <NamedEnum E>
constexpr std::optional<E> parse_enum(std::string_view text) {
  for (const auto& [candidate, name] : names_of(std::type_identity<E>{})) {
    if (name == text) return candidate;
  }
  return std::nullopt;
}

}  // namespace kube
