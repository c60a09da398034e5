// Rare<T>: an optional value that most objects do not have. It takes a pointer where it is absent,
// while std::optional takes the room of a T. Copies are deep; in all else it is used like
// std::optional.
#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace base {

template <typename T>
class Rare {
 public:
  using value_type = T;

  Rare() = default;
  Rare(std::nullopt_t) {}  // NOLINT: converts, as std::optional does
  Rare(T value) : value_{std::make_unique<T>(std::move(value))} {}  // NOLINT: likewise
  Rare(const Rare& other) : value_{other ? std::make_unique<T>(*other) : nullptr} {}
  Rare(Rare&&) noexcept = default;
  ~Rare() = default;
  // A value that is there is assigned to: its texts and lists keep their room.
  Rare& operator=(const Rare& other) {
    if (this == &other) return *this;
    if (value_ && other) {
      *value_ = *other;
    } else {
      value_ = other ? std::make_unique<T>(*other) : nullptr;
    }
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  T value_or(T otherwise) const { return value_ ? *value_ : std::move(otherwise); }
  template <typename... Args>
  T& emplace(Args&&... args) {
    value_ = std::make_unique<T>(std::forward<Args>(args)...);
    return *value_;
  }
  void reset() { value_.reset(); }

  friend bool operator==(const Rare& a, const Rare& b) {
    return a.has_value() == b.has_value() && (!a || *a == *b);
  }
  friend bool operator==(const Rare& a, std::nullopt_t) { return !a; }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace base
