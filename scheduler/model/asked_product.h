// Products of numbers that a user asks for: tasks, CPUs of each, memory of each. Each number of a
// request is bounded, their products are not, and one that wrapped around would be a small number.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sched {

// More CPUs than any cluster has, and few enough that the sum of two such numbers is an int.
inline constexpr int kAskedMax = 1 << 30;

// Returns the product, at most kAskedMax. REQUIRES: none is negative.
template <typename... More>
constexpr int asked_product(int a, int b, More... more) {
  const auto product = static_cast<int>(std::min<std::int64_t>(std::int64_t{a} * b, kAskedMax));
  if constexpr (sizeof...(more) == 0) {
    return product;
  } else {
    return asked_product(product, more...);
  }
}

// Returns the product of an amount (MiB) and a count, at most 2^62, so that the sum of two such
// amounts does not wrap around either. REQUIRES: none is negative.
constexpr std::int64_t asked_amount(std::int64_t each, std::int64_t count) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  if (count != 0 && each > kMax / count) return kMax;
  return each * count;
}

// Returns how many of `by` the value needs. REQUIRES: neither is negative, `by` is not 0.
template <typename T>
constexpr T quotient_up(T value, T by) {
  return (value + by - 1) / by;
}

}  // namespace sched
