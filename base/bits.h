// Counting bits without a library call: the target has no instruction for it that may be relied on.
#pragma once

#include <cstdint>

namespace base {

constexpr int bits_count(std::uint64_t word) {
  word -= word >> 1 & 0x5555'5555'5555'5555U;
  word = (word & 0x3333'3333'3333'3333U) + (word >> 2 & 0x3333'3333'3333'3333U);
  word = (word + (word >> 4)) & 0x0f0f'0f0f'0f0f'0f0fU;
  return static_cast<int>(word * 0x0101'0101'0101'0101U >> 56);
}

}  // namespace base
