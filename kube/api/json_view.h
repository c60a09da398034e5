// JSON as it came, read without a tree: a table says where each value stands in the text, of the
// fields that are wanted. A value that is not read costs a look at its characters, and one that is
// read is copied once, into the object that is made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/known_fields.h"

namespace kube {

class JsonReader;
class JsonView;

// A text and its table, of 24 bytes for each value.
class JsonText {
 public:
  // Reads the members that `fields` names. They are checked as the JSON library checks them; of the
  // others only quotes and braces. nullopt: the text is not JSON. It must outlive the views.
  static std::optional<JsonText> read(std::string_view text, const KnownFields& fields);

  JsonView root() const;

 private:
  friend JsonReader;
  friend JsonView;

  enum class Kind : std::uint8_t { kNull, kBoolean, kNumber, kString, kList, kObject };
  // Followed by the values inside. Positions are bytes of the text; strings without their quotes.
  struct Value {
    std::uint32_t name_at = 0, name_size = 0;  // of a member of an object
    std::uint32_t at = 0, size = 0;
    std::uint32_t count = 1;  // of values: this one and those inside, at any depth
    Kind kind = Kind::kNull;
    bool name_is_plain = true, is_plain = true;  // ASCII without escapes
  };

  std::string_view text_;
  std::vector<Value> values_;
};

// A value of a JsonText, valid as long as that, or nothing at all. Asking for what it is not gives
// nothing: an empty string, no elements.
class JsonView {
 public:
  // The values in a list or an object, in the text's order.
  class Elements;

  JsonView() = default;  // nothing

  bool exists() const { return value_ != nullptr; }
  // Also nothing.
  bool is_null() const { return !exists() || value_->kind == Kind::kNull; }
  bool is_boolean() const { return is(Kind::kBoolean); }
  bool is_number() const { return is(Kind::kNumber); }
  bool is_string() const { return is(Kind::kString); }
  bool is_list() const { return is(Kind::kList); }
  bool is_object() const { return is(Kind::kObject); }

  bool boolean() const { return is_boolean() && text_[value_->at] == 't'; }
  std::string string() const;
  bool is_empty_string() const { return is_string() && value_->size == 0; }
  // Returns the member of that name; of several the last. Cost: a look at each member.
  JsonView find(std::string_view name) const;
  Elements elements() const;
  // Returns the members; the last one of each name counts.
  std::map<std::string, JsonView> members() const;
  // Returns the value as the JSON library parses it, with the members that were not wanted;
  // discarded if one of those is not JSON, null if there is no value.
  nlohmann::json tree() const;

 private:
  friend JsonText;
  using Kind = JsonText::Kind;
  using Value = JsonText::Value;

  JsonView(const Value* value, const char* text) : value_{value}, text_{text} {}

  bool is(Kind kind) const { return exists() && value_->kind == kind; }
  std::string name() const;
  bool has_name(std::string_view name) const;

  const Value* value_ = nullptr;
  const char* text_ = nullptr;
};

class JsonView::Elements {
 public:
  class Iterator {
   public:
    Iterator(const Value* at, const char* text) : at_{at}, text_{text} {}
    JsonView operator*() const { return {at_, text_}; }
    Iterator& operator++() {
      at_ += at_->count;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Value* at_;
    const char* text_;
  };

  Elements(const Value* begin, const Value* end, const char* text)
      : begin_{begin}, end_{end}, text_{text} {}
  Iterator begin() const { return {begin_, text_}; }
  Iterator end() const { return {end_, text_}; }
  // Cost: a step for each.
  std::size_t count() const;

 private:
  const Value* begin_;
  const Value* end_;
  const char* text_;
};

}  // namespace kube
