// StrongInt: an integer that is not interchangeable with another kind of integer. Passing a
// NodeIndex for a MilliCpu, `NodeIndex n = 3` and `NodeIndex{3.5}` do not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <string>

namespace base {

// `Tag`: a type that only tells the kinds of integers apart. `Representation`: the integer inside.
template <typename Tag, typename Representation>
class StrongInt {
 public:
  using rep = Representation;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Representation value) : value_{value} {}

  constexpr Representation value() const { return value_; }
  // For indexing. REQUIRES: value() >= 0.
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

  constexpr StrongInt& operator++() {
    ++value_;
    return *this;
  }
  // The cast undoes the promotion to int of a small Representation.
  constexpr StrongInt& operator+=(StrongInt other) {
    value_ = static_cast<Representation>(value_ + other.value_);
    return *this;
  }
  constexpr StrongInt& operator-=(StrongInt other) {
    value_ = static_cast<Representation>(value_ - other.value_);
    return *this;
  }
  friend constexpr StrongInt operator+(StrongInt a, StrongInt b) { return a += b; }
  friend constexpr StrongInt operator-(StrongInt a, StrongInt b) { return a -= b; }

 private:
  Representation value_{};
};

template <typename Tag, typename Representation>
std::string to_string(StrongInt<Tag, Representation> value) {
  return std::to_string(value.value());
}

}  // namespace base
