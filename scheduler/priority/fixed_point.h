// Fractions as whole numbers, in billionths ("ppb"), and powers of two of them. Two schedulers on
// different machines get the same results: a double is only multiplied, divided or rooted here,
// which IEEE 754 defines to the last bit, and never passed to a function of the C library that
// rounds as it likes.
#pragma once

#include <cmath>
#include <cstdint>

namespace sched {

inline constexpr std::int64_t kBillion = 1'000'000'000;

// part / whole in billionths, rounded down; 0 when there is no whole. REQUIRES: none is negative.
inline std::int64_t ppb(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return 0;
  if (part <= INT64_MAX / kBillion) return part * kBillion / whole;
  return static_cast<std::int64_t>(static_cast<double>(part) / static_cast<double>(whole) * 1e9);
}
// a × b where both are in billionths. REQUIRES: one of them is at most 1, the other less than nine.
inline std::int64_t times_ppb(std::int64_t a, std::int64_t b) {
  return a * b / kBillion;
}

// 2^-x, for x >= 0: halved once for each whole of x, and multiplied by the root 2^(-1/2^i) for each
// bit i of the rest.
inline double half_to_the(double x) {
  constexpr double kSmallest = 1074;  // 2^-1074 is the smallest double
  if (!(x < kSmallest)) return 0;
  double whole = 0;
  double rest = std::modf(x, &whole);
  double result = 1;
  double root = 0.5;
  for (int bit = 0; bit < 52 && rest > 0; ++bit) {
    root = std::sqrt(root);
    rest *= 2;
    if (rest >= 1) {
      rest -= 1;
      result *= root;
    }
  }
  for (; whole > 0; whole -= 1) result *= 0.5;
  return result;
}

}  // namespace sched
