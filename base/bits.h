// Counting bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace base {

// Returns how many bits of one word are set, without a library call: the target has no instruction
// for it that may be relied on. The sums of neighboring fields of 1, 2 and 4 bits are made in
// parallel; the multiplication adds the eight bytes into the highest. SOURCE: Henry S. Warren,
// "Hacker's Delight", section 5-1.
constexpr int bits_count(std::uint64_t word) {
  word -= word >> 1 & 0x5555'5555'5555'5555U;
  word = (word & 0x3333'3333'3333'3333U) + (word >> 2 & 0x3333'3333'3333'3333U);
  word = (word + (word >> 4)) & 0x0f0f'0f0f'0f0f'0f0fU;
  return static_cast<int>(word * 0x0101'0101'0101'0101U >> 56);
}

// Returns how many bits of the words word_at(0) … word_at(size − 1) are set. The machine is asked
// once for all of them whether it has the instruction, which makes it several times as fast.
#if defined(__x86_64__)
template <typename WordAt>
__attribute__((target("popcnt"))) int bits_count_fast(std::size_t size, const WordAt& word_at) {
  int total = 0;
  for (std::size_t i = 0; i < size; ++i) total += __builtin_popcountll(word_at(i));
  return total;
}
#endif

template <typename WordAt>
int bits_count(std::size_t size, const WordAt& word_at) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("popcnt") != 0) return bits_count_fast(size, word_at);
#endif
  int total = 0;
  for (std::size_t i = 0; i < size; ++i) total += bits_count(word_at(i));
  return total;
}

}  // namespace base
