// A set of nodes by *rank*: the position in Cluster::order(), the natural sort of the names. So the
// neighbors in a set are the neighbors in Slurm's sense (4.4.4), and "in node order" is ascending
// order. A set is valid for one Cluster::topology_version() only.
//
// Cost: one bit per node; set operations are O(nodes / 64). Both operands must have one size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bits.h"

namespace sched {

// Bits from size() on are always 0, so that counting and comparing need no mask. Words come in
// strides of four, and the spare ones are 0, too.
class NodeSet {
 public:
  NodeSet() = default;
  // Makes the empty set over ranks 0 … size − 1.
  explicit NodeSet(int size) : size_{size}, words_(words_for(size)) {}
  static NodeSet all(int size) {
    NodeSet set{size};
    for (std::size_t i = 0; i < word_of(size); ++i) set.words_[i] = ~std::uint64_t{0};
    if (size % 64 != 0) set.words_[word_of(size)] = (std::uint64_t{1} << (size % 64)) - 1;
    return set;
  }

  int size() const { return size_; }  // the number of ranks, not of members
  bool test(int rank) const { return ((words_[word_of(rank)] >> bit_of(rank)) & 1U) != 0; }
  void set(int rank) { words_[word_of(rank)] |= std::uint64_t{1} << bit_of(rank); }
  void reset(int rank) { words_[word_of(rank)] &= ~(std::uint64_t{1} << bit_of(rank)); }
  void assign(int rank, bool member) { member ? set(rank) : reset(rank); }
  void clear() {
    for (std::uint64_t& word : words_) word = 0;
  }

  int count() const {
    return base::bits_count(words_.size(), [this](std::size_t i) { return words_[i]; });
  }
  // Returns true if there are at least `wanted` members; stops as soon as it is known.
  bool has_at_least(int wanted) const {
    for (std::size_t i = 0; i < words_.size() && wanted > 0; ++i) {
      if (words_[i] != 0) wanted -= base::bits_count(words_[i]);
    }
    return wanted <= 0;
  }
  // |this ∩ other ∩ …| without building it.
  template <typename... Sets>
  int count_and(const Sets&... others) const {
    return base::bits_count(words_.size(),
                            [&](std::size_t i) { return (words_[i] & ... & others.words_[i]); });
  }
  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  bool intersects(const NodeSet& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  bool contains(const NodeSet& other) const {
    for (std::size_t i = 0; i < words_.size(); i += kStride) {
      std::uint64_t missing = 0;
      for (std::size_t j = i; j < i + kStride; ++j) missing |= other.words_[j] & ~words_[j];
      if (missing != 0) return false;
    }
    return true;
  }
  // Returns the lowest member >= from, or -1:  for (int r = s.next(0); r >= 0; r = s.next(r + 1))
  int next(int from) const {
    if (from >= size_) return -1;
    std::size_t word = word_of(from);
    std::uint64_t rest = words_[word] >> bit_of(from) << bit_of(from);
    while (rest == 0) {
      if (++word == words_.size()) return -1;
      rest = words_[word];
    }
    return static_cast<int>(word * 64) + std::countr_zero(rest);
  }
  // Walks over an intersection without building it.
  // The lowest common member >= from of this set and of the others, or -1.
  template <typename... Sets>
  int next_common(int from, const Sets&... others) const {
    if (from >= size_) return -1;
    std::size_t word = word_of(from);
    std::uint64_t rest = (words_[word] & ... & others.words_[word]) >> bit_of(from) << bit_of(from);
    while (rest == 0) {
      if (++word == words_.size()) return -1;
      rest = (words_[word] & ... & others.words_[word]);
    }
    return static_cast<int>(word * 64) + std::countr_zero(rest);
  }
  // Returns the lowest member >= from that is not in `other`, or -1.
  int next_outside(int from, const NodeSet& other) const {
    if (from >= size_) return -1;
    std::size_t word = word_of(from);
    std::uint64_t rest = (words_[word] & ~other.words_[word]) >> bit_of(from) << bit_of(from);
    while (rest == 0) {
      if (++word == words_.size()) return -1;
      rest = words_[word] & ~other.words_[word];
    }
    return static_cast<int>(word * 64) + std::countr_zero(rest);
  }
  // Returns the lowest rank >= from that is not a member; size() if there is none.
  int next_absent(int from) const {
    if (from >= size_) return size_;
    std::size_t word = word_of(from);
    std::uint64_t rest = ~words_[word] >> bit_of(from) << bit_of(from);
    while (rest == 0) {
      if (++word == words_.size()) return size_;
      rest = ~words_[word];
    }
    const int found = static_cast<int>(word * 64) + std::countr_zero(rest);
    return found < size_ ? found : size_;
  }

  // Becomes a ∩ b ∩ …, in one go and in place.
  template <typename... Sets>
  void assign_and(const NodeSet& a, const Sets&... others) {
    size_ = a.size_;
    words_.resize(a.words_.size());
    for (std::size_t i = 0; i < words_.size(); i += kStride) {
      for (std::size_t j = i; j < i + kStride; ++j) {
        words_[j] = (a.words_[j] & ... & others.words_[j]);
      }
    }
  }
  NodeSet& operator|=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a | b; });
  }
  NodeSet& operator&=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & b; });
  }
  NodeSet& operator-=(const NodeSet& other) {
    return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & ~b; });
  }
  friend NodeSet operator|(NodeSet a, const NodeSet& b) { return a |= b; }
  friend NodeSet operator&(NodeSet a, const NodeSet& b) { return a &= b; }
  friend NodeSet operator-(NodeSet a, const NodeSet& b) { return a -= b; }
  friend bool operator==(const NodeSet&, const NodeSet&) = default;

 private:
  // Words come in strides, so that the compiler can do several at once.
  static constexpr std::size_t kStride = 4;
  static constexpr std::size_t words_for(int size) {
    return (static_cast<std::size_t>(size) + 64 * kStride - 1) / (64 * kStride) * kStride;
  }
  template <typename Operation>
  NodeSet& combine(const NodeSet& other, Operation operation) {
    std::uint64_t* const mine = words_.data();
    const std::uint64_t* const theirs = other.words_.data();
    for (std::size_t i = 0; i < words_.size(); i += kStride) {
      for (std::size_t j = i; j < i + kStride; ++j) mine[j] = operation(mine[j], theirs[j]);
    }
    return *this;
  }
  static constexpr std::size_t word_of(int rank) { return static_cast<std::size_t>(rank) / 64; }
  static constexpr std::size_t bit_of(int rank) { return static_cast<std::size_t>(rank) % 64; }

  int size_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace sched
