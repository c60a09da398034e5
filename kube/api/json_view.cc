#include "kube/api/json_view.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

// The table of values is one vector, in the order of the text: a list or an object is followed by
// what it holds, and its `count` says how many rows that is, itself among them. So the next sibling
// of a row is `count` rows further, and no row needs a pointer. For {"a": [1, 2], "b": {}} with all
// members wanted:
//
//   row    0 object   1 "a": list   2 number   3 number   4 "b": object
//   count  5          3             1          1          1
//
// Searching "b" looks at rows 1 and 4. Nothing is copied or unescaped until a caller asks for it.
//
// Two things make this cheaper than a parser that builds a tree. A member that the type does not
// read is passed over by its quotes and braces, without a row. A value that is read is checked here
// only if it has the usual form (ASCII without escapes, a short integer); anything else is given
// to the JSON library, so that what counts as JSON is decided by one parser. A watch event of a pod
// of 8.2 KB costs 109,000 instructions here and 50,000 in the decoder, instead of 447,000 with the
// library's tree (docs/design/performance.md).
namespace kube {
namespace {

using nlohmann::json;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Returns what the JSON library makes of a string between quotes; "" if it refuses it.
std::string unescaped(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + 2);
  ((quoted += '"') += text) += '"';
  const json value = json::parse(quoted, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string{};
}

// Returns true if the library takes `text`, a whole value with its quotes, for JSON. UTF-8, escapes
// and the forms of numbers are judged here.
bool is_accepted(std::string_view text) {
  return json::accept(text);
}

// Nearly all numbers are integers of few digits; the library judges the others.
bool is_short_integer(std::string_view text) {
  constexpr std::size_t kDigitsMax = 18;  // of an int64, whatever they are
  if (text.empty() || text.size() > kDigitsMax || (text[0] == '0' && text.size() > 1)) return false;
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A byte beyond ASCII is not plain, also on machines whose `char` has no sign (arm64).
bool is_plain_byte(char c) {
  return static_cast<signed char>(c) >= ' ' && c != '"' && c != '\\';
}

// Returns the position behind the quote that ends the string whose text begins at `at`; null if
// there is none.
const char* end_of_string(const char* at, const char* end) {
  const char* const begin = at;
  while (at < end) {
    const void* found = std::memchr(at, '"', static_cast<std::size_t>(end - at));
    if (found == nullptr) break;
    const char* const quote = static_cast<const char*>(found);
    // A quote behind an odd number of backslashes is one of the text.
    const char* slashes = quote;
    while (slashes > begin && slashes[-1] == '\\') --slashes;
    if ((quote - slashes) % 2 == 0) return quote + 1;
    at = quote + 1;
  }
  return nullptr;
}

}  // namespace

// One pass over the text, without recursion: the depth is the author's choice.
// The stack of what is open lies on the heap: a million brackets in a row cost memory in proportion
// to the text, while a recursive parser could run out of stack.
class JsonReader {
 public:
  JsonReader(std::string_view text, std::vector<JsonText::Value>& values)
      : text_{text}, values_{values} {}

  // Each returns false if the text is not JSON.

  // 1. read a value; of a list or an object only its beginning
  // 2. as long as one of them is open, read its next value or its end
  bool read(const KnownFields& fields) {
    skip_space();
    if (!value({}, fields)) return false;
    while (!open_.empty()) {
      if (!next()) return false;
    }
    skip_space();
    return at_ == text_.size();
  }

 private:
  using Kind = JsonText::Kind;
  using Value = JsonText::Value;
  // A list or an object whose end has not come yet.
  struct Open {
    std::size_t index;          // in values_
    const KnownFields* fields;  // of the object, or of those in the list
    bool is_object;
    bool is_empty = true;
  };
  struct Name {
    std::uint32_t at = 0, size = 0;
    bool is_plain = true;
  };

  // Returns the fields of a value that is wanted as a whole.
  static const KnownFields& all() {
    static const KnownFields kAll;
    return kAll;
  }

  // Reads one step inside the innermost list or object: its end, which completes its row, or its
  // next value with the comma before it. A comma must be followed by a value, so "[1,]" is refused.
  bool next() {
    Open& open = open_.back();
    skip_space();
    if (take(open.is_object ? '}' : ']')) {
      Value& value = values_[open.index];
      value.size = position() - value.at;
      value.count = static_cast<std::uint32_t>(values_.size() - open.index);
      open_.pop_back();
      return true;
    }
    if (!open.is_empty) {
      if (!take(',')) return false;
      skip_space();
    }
    open.is_empty = false;
    if (open.is_object) return member(*open.fields);
    // A list's elements have the fields that it has, but lists in lists are read as a whole.
    const bool is_list = at_ < text_.size() && text_[at_] == '[';
    return value({}, is_list ? all() : *open.fields);
  }

  // The name of a field that is wanted has no escapes; a name that has some may be one that is only
  // written differently.
  bool member(const KnownFields& fields) {
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    Name name;
    if (!string(name.at, name.size, name.is_plain)) return false;
    const std::string_view text = text_.substr(name.at, name.size);
    // A name with escapes is compared when it is asked for (has_name), so its value must be there
    // then.
    const bool may_be_any = fields.keeps_all() || text.find('\\') != std::string_view::npos;
    const KnownFields* known = may_be_any ? &all() : fields.find(text);
    skip_space();
    if (!take(':')) return false;
    skip_space();
    if (known == nullptr) return skip_value();
    // The text includes the quotes, which `name` does not count.
    if (!name.is_plain && !is_accepted(text_.substr(name.at - 1, name.size + 2))) return false;
    return value(name, *known);
  }

  // Adds the row of the value at this position. `name` is that of the member, empty for an element
  // of a list. A nested value is only begun: its size and count are known at its end.
  bool value(const Name& name, const KnownFields& fields) {
    if (at_ >= text_.size()) return false;
    Value& value = values_.emplace_back();
    value.name_at = name.at;
    value.name_size = name.size;
    value.name_is_plain = name.is_plain;
    value.at = position();
    const char first = text_[at_];
    if (first == '{' || first == '[') return nested(value, fields);
    if (first == '"') {
      value.kind = Kind::kString;
      return string(value.at, value.size, value.is_plain) &&
             (value.is_plain || is_accepted(text_.substr(value.at - 1, value.size + 2)));
    }
    // Only a word or a number is left, which ends before a comma, a bracket or a blank.
    if (!skip_value()) return false;
    value.size = position() - value.at;
    const std::string_view text = text_.substr(value.at, value.size);
    if (text == "null") return true;
    const bool is_boolean = text == "true" || text == "false";
    value.kind = is_boolean ? Kind::kBoolean : Kind::kNumber;
    return is_boolean || is_short_integer(text) || is_accepted(text);
  }

  // A value that is kept as raw JSON has one row, whatever it holds. Its text is checked when it is
  // decoded: parsing it here as well would double its cost.
  bool nested(Value& value, const KnownFields& fields) {
    const bool is_object = text_[at_] == '{';
    value.kind = is_object ? Kind::kObject : Kind::kList;
    if (fields.is_raw()) {
      if (!skip_nested()) return false;
      value.size = position() - value.at;
      return true;
    }
    open_.push_back({.index = values_.size() - 1, .fields = &fields, .is_object = is_object});
    ++at_;
    return true;
  }

  // Reads from a quote to behind the next one. If the text is not plain, escapes and bytes are not
  // checked.
  bool string(std::uint32_t& at, std::uint32_t& size, bool& is_plain) {
    const std::size_t begin = ++at_;
    const char* const text = text_.data();
    std::size_t end = begin;
    while (end < text_.size() && is_plain_byte(text[end])) ++end;
    is_plain = end < text_.size() && text[end] == '"';
    if (!is_plain) {
      const char* const behind = end_of_string(text + begin, text + text_.size());
      if (behind == nullptr) return false;
      end = static_cast<std::size_t>(behind - 1 - text);
    }
    at = static_cast<std::uint32_t>(begin);
    size = static_cast<std::uint32_t>(end - begin);
    at_ = end + 1;
    return true;
  }

  // --- what is not wanted: strings by their quotes, objects and lists by their braces ---

  // Passes over a value of any kind. False if the text ends within it or there is none; a word is
  // not looked at, so {"unread": nonsense} passes.
  bool skip_value() {
    if (at_ >= text_.size()) return false;
    const char first = text_[at_];
    if (first == '"') return skip_string();
    if (first == '{' || first == '[') return skip_nested();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ']' &&
           !is_space(text_[at_])) {
      ++at_;
    }
    return at_ > begin;
  }

  // Most of an object's text goes through here: managedFields alone are often more than half.
  bool skip_nested() {
    const char* const end = text_.data() + text_.size();
    const char* at = text_.data() + at_;
    std::size_t depth = 0;
    while (at < end) {
      const char c = *at++;
      if (c == '"') {
        at = end_of_string(at, end);
        if (at == nullptr) return false;
        continue;
      }
      const int brace = c | 0x20;  // '[' and '{', ']' and '}' differ in this bit
      if (brace == '{') ++depth;
      if (brace == '}' && --depth == 0) {
        at_ = static_cast<std::size_t>(at - text_.data());
        return true;
      }
    }
    return false;
  }

  bool skip_string() {
    const char* const behind =
        end_of_string(text_.data() + at_ + 1, text_.data() + text_.size());
    if (behind == nullptr) return false;
    at_ = static_cast<std::size_t>(behind - text_.data());
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::uint32_t position() const { return static_cast<std::uint32_t>(at_); }

  const std::string_view text_;
  std::vector<Value>& values_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
};

// Positions are 32 bits, which keeps a row at 24 bytes; 4 GiB is far above the largest answer that
// a transport takes.
std::optional<JsonText> JsonText::read(std::string_view text, const KnownFields& fields) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  JsonText out;
  out.text_ = text;
  // A value of an object with managedFields takes 50 to 70 bytes of text; the table may grow.
  out.values_.reserve(text.size() / 64 + 8);
  if (!JsonReader{text, out.values_}.read(fields)) return std::nullopt;
  return out;
}

JsonView JsonText::root() const {
  return {values_.data(), text_.data()};
}

std::string JsonView::string() const {
  if (!is_string()) return {};
  const std::string_view text{text_ + value_->at, value_->size};
  return value_->is_plain ? std::string{text} : unescaped(text);
}

std::string JsonView::name() const {
  const std::string_view text{text_ + value_->name_at, value_->name_size};
  return value_->name_is_plain ? std::string{text} : unescaped(text);
}

bool JsonView::has_name(std::string_view name) const {
  if (!value_->name_is_plain) return this->name() == name;
  return value_->name_size == name.size() &&
         std::memcmp(text_ + value_->name_at, name.data(), name.size()) == 0;
}

// A scan instead of an index: objects of the API have a dozen members, and building an index would
// cost more than the few searches in it. It does not stop at the first hit, since the library lets
// the last of two equal names win.
JsonView JsonView::find(std::string_view name) const {
  JsonView found;
  if (!is_object()) return found;
  const Value* const end = value_ + value_->count;
  for (const Value* at = value_ + 1; at != end; at += at->count) {
    // Most names differ in length already. A name with escapes says nothing by its length.
    if (at->name_is_plain && at->name_size != name.size()) continue;
    const JsonView member{at, text_};
    if (member.has_name(name)) found = member;
  }
  return found;
}

// The rows inside begin behind that of the value itself.
JsonView::Elements JsonView::elements() const {
  if (!is_list() && !is_object()) return {nullptr, nullptr, text_};
  return {value_ + 1, value_ + value_->count, text_};
}

std::size_t JsonView::Elements::count() const {
  std::size_t count = 0;
  for (const Value* at = begin_; at != end_; at += at->count) ++count;
  return count;
}

std::map<std::string, JsonView> JsonView::members() const {
  std::map<std::string, JsonView> out;
  if (!is_object()) return out;
  // Servers write maps in the order of their keys.
  for (const JsonView member : elements()) out.insert_or_assign(out.end(), member.name(), member);
  return out;
}

json JsonView::tree() const {
  if (is_null()) return nullptr;
  if (is_string()) return string();
  const std::string_view text{text_ + value_->at, value_->size};
  // The library makes the same type of it, an unsigned number, but by way of its whole parser.
  if (is_number() && is_short_integer(text)) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  return json::parse(text, nullptr, false);
}

}  // namespace kube
