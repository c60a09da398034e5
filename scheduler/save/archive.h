// A state as text, and back: one description of a type's members serves both directions. A saved
// value is a sequence of words separated by blanks; strings are length-prefixed.
//
// Reader never trusts its input: after the first word that makes no sense ok() is false and
// everything read stays at its default; numbers of elements are bounded by the length of the input.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/strong_int.h"
#include "base/time.h"
#include "scheduler/model/core_set.h"

namespace sched::save {

class Writer {
 public:
  static constexpr bool kReads = false;
  void number(std::int64_t value) {
    text_ += std::to_string(value);
    text_ += ' ';
  }
  void text(const std::string& value) {
    number(static_cast<std::int64_t>(value.size()));
    text_ += value;
    text_ += ' ';
  }
  bool ok() const { return true; }
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view text) : text_{text} {}
  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    const auto length = static_cast<std::size_t>(end - text_.data());
    if (error != std::errc{} || length >= text_.size() || text_[length] != ' ') {
      fail();
      return 0;
    }
    text_.remove_prefix(length + 1);
    return value;
  }
  // A number of elements, each of which takes at least two characters.
  std::size_t count() {
    const std::int64_t value = number();
    if (value < 0 || static_cast<std::uint64_t>(value) > text_.size()) {
      fail();
      return 0;
    }
    return static_cast<std::size_t>(value);
  }
  std::string text() {
    const std::size_t length = count();
    if (text_.size() < length + 1) {
      fail();
      return {};
    }
    std::string value{text_.substr(0, length)};
    text_.remove_prefix(length + 1);
    return value;
  }
  void fail() {
    ok_ = false;
    text_ = {};
  }
  bool ok() const { return ok_; }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

template <typename A, typename T>
requires std::integral<T> || std::is_enum_v<T>
void visit(A& archive, T& value) {
  if constexpr (A::kReads) {
    value = static_cast<T>(archive.number());
  } else {
    archive.number(static_cast<std::int64_t>(value));
  }
}
template <typename A, typename Tag, typename R>
void visit(A& archive, base::StrongInt<Tag, R>& value) {
  R raw = value.value();
  visit(archive, raw);
  value = base::StrongInt<Tag, R>{raw};
}
template <typename A>
void visit(A& archive, base::Duration& value) {
  std::int64_t raw = value.count();
  visit(archive, raw);
  value = base::Duration{raw};
}
template <typename A>
void visit(A& archive, base::Instant& value) {
  std::int64_t raw = base::micros_since_epoch(value);
  visit(archive, raw);
  value = base::instant_from_micros(raw);
}
template <typename A>
void visit(A& archive, std::string& value) {
  if constexpr (A::kReads) {
    value = archive.text();
  } else {
    archive.text(value);
  }
}
template <typename A>
void visit(A& archive, std::monostate&) {
  (void)archive;
}
template <typename A>
void visit(A& archive, CoreSet& cores) {
  if constexpr (A::kReads) {
    cores = {};
    for (std::size_t left = archive.count(); left > 0 && archive.ok(); --left) {
      const std::int64_t first = archive.number();
      const std::int64_t end = archive.number();
      if (first < 0 || end > kCoresPerNodeMax || first >= end) return archive.fail();
      for (std::int64_t core = first; core < end; ++core) cores.set(static_cast<int>(core));
    }
  } else {  // runs of cores
    std::vector<std::pair<int, int>> runs;
    for (int core = 0; core < kCoresPerNodeMax; ++core) {
      if (!cores.test(core)) continue;
      if (runs.empty() || runs.back().second != core) runs.push_back({core, core});
      runs.back().second = core + 1;
    }
    archive.number(static_cast<std::int64_t>(runs.size()));
    for (const auto& [first, end] : runs) {
      archive.number(first);
      archive.number(end);
    }
  }
}

// The containers find `visit` of their elements when they are instantiated.
template <typename A, typename T>
void visit(A& archive, std::optional<T>& value);
template <typename A, typename T>
void visit(A& archive, std::vector<T>& values);
template <typename A, typename T>
void visit(A& archive, std::set<T>& values);
template <typename A, typename K, typename V>
void visit(A& archive, std::map<K, V>& values);
template <typename A, typename X, typename Y>
void visit(A& archive, std::pair<X, Y>& value);
template <typename A, typename... Ts>
void visit(A& archive, std::variant<Ts...>& value);

template <typename A, typename... Ts>
void all(A& archive, Ts&... members) {
  (visit(archive, members), ...);
}

template <typename A, typename T>
void visit(A& archive, std::optional<T>& value) {
  bool present = value.has_value();
  visit(archive, present);
  if constexpr (A::kReads) {
    if (present) {
      value.emplace();
    } else {
      value.reset();
    }
  }
  if (value) visit(archive, *value);
}
template <typename A, typename T>
void visit(A& archive, std::vector<T>& values) {
  if constexpr (A::kReads) {
    values.clear();
    for (std::size_t left = archive.count(); left > 0 && archive.ok(); --left) {
      T value{};
      visit(archive, value);
      values.push_back(std::move(value));
    }
  } else {
    archive.number(static_cast<std::int64_t>(values.size()));
    for (T& value : values) visit(archive, value);
  }
}
template <typename A, typename T>
void visit(A& archive, std::set<T>& values) {
  std::vector<T> list(values.begin(), values.end());
  visit(archive, list);
  if constexpr (A::kReads) values = std::set<T>(list.begin(), list.end());
}
template <typename A, typename K, typename V>
void visit(A& archive, std::map<K, V>& values) {
  std::vector<std::pair<K, V>> list(values.begin(), values.end());
  visit(archive, list);
  if constexpr (A::kReads) values = std::map<K, V>(list.begin(), list.end());
}
template <typename A, typename X, typename Y>
void visit(A& archive, std::pair<X, Y>& value) {
  all(archive, value.first, value.second);
}
template <typename A, typename... Ts>
void visit(A& archive, std::variant<Ts...>& value) {
  std::size_t index = value.index();
  visit(archive, index);
  if constexpr (A::kReads) {
    bool known = false;
    std::size_t at = 0;
    ((at++ == index ? (value.template emplace<Ts>(), known = true) : false) || ...);
    if (!known) return archive.fail();
  }
  std::visit([&](auto& alternative) { visit(archive, alternative); }, value);
}

}  // namespace sched::save
