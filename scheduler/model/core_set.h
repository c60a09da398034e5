// A set of cores of one node, by core number on the node (socket * cores_per_socket + core). Fixed
// size without allocation, so that thousands of per-node sets can be combined in a pass.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"

namespace sched {

// A node with more cores is refused when it is added (Scheduler, NodeUpdate).
inline constexpr int kCoresPerNodeMax = 512;

// Operations look at all 8 words, whatever the node has. Cores are from 0 to kCoresPerNodeMax − 1;
// only next() may be asked from kCoresPerNodeMax on, which is the end of a walk.
class CoreSet {
 public:
  // Returns the cores 0 … count − 1.
  static constexpr CoreSet first(int count) {
    CoreSet set;
    for (std::size_t word = 0; word < kWords && count > 0; ++word, count -= 64) {
      set.words_[word] = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    }
    return set;
  }

  constexpr bool test(int core) const {
    return ((words_[word_of(core)] >> bit_of(core)) & 1U) != 0;
  }
  constexpr void set(int core) { words_[word_of(core)] |= std::uint64_t{1} << bit_of(core); }
  constexpr void reset(int core) { words_[word_of(core)] &= ~(std::uint64_t{1} << bit_of(core)); }

  constexpr int count() const {
    int total = 0;
    for (const std::uint64_t word : words_) {  // most nodes have few cores
      if (word != 0) total += base::bits_count(word);
    }
    return total;
  }
  constexpr bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  constexpr bool intersects(const CoreSet& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < kWords; ++i) common |= words_[i] & other.words_[i];
    return common != 0;
  }
  constexpr bool contains(const CoreSet& other) const {
    for (std::size_t i = 0; i < kWords; ++i) {
      if ((other.words_[i] & ~words_[i]) != 0) return false;
    }
    return true;
  }
  // Returns the lowest core >= from, or -1.
  constexpr int next(int from) const {
    for (std::size_t word = word_of(from), bit = bit_of(from); word < kWords; ++word, bit = 0) {
      const std::uint64_t rest = words_[word] >> bit << bit;
      if (rest != 0) return static_cast<int>(word) * 64 + std::countr_zero(rest);
    }
    return -1;
  }

  constexpr CoreSet& operator|=(const CoreSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr CoreSet& operator&=(const CoreSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] &= other.words_[i];
    return *this;
  }
  // Set difference.
  constexpr CoreSet& operator-=(const CoreSet& other) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend constexpr CoreSet operator|(CoreSet a, const CoreSet& b) { return a |= b; }
  friend constexpr CoreSet operator&(CoreSet a, const CoreSet& b) { return a &= b; }
  friend constexpr CoreSet operator-(CoreSet a, const CoreSet& b) { return a -= b; }
  friend constexpr bool operator==(const CoreSet&, const CoreSet&) = default;

 private:
  static constexpr std::size_t kWords = kCoresPerNodeMax / 64;
  static constexpr std::size_t word_of(int core) { return static_cast<std::size_t>(core) / 64; }
  static constexpr std::size_t bit_of(int core) { return static_cast<std::size_t>(core) % 64; }

  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace sched
