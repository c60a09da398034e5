// A small seeded generator (SplitMix64) with the same draws on every machine and compiler, for
// back-off jitter, tests and simulations. Not for secrets. The caller logs the seed.
#pragma once

#include <cstdint>

namespace base {

class Prng {
 public:
  explicit constexpr Prng(std::uint64_t seed) : state_{seed} {}

  // SOURCE: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (2014); the
  // constants are those of the reference implementation.
  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // 0 … bound − 1; slightly biased for bounds near 2^64, which no caller has. REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace base
