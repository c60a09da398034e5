#include "kube/api/known_fields.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace kube {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// One pass over the text, without a tree. What is dropped is only skipped: strings by their quotes,
// objects and lists by their braces.
class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_{text} {}

  std::string cut(const KnownFields& fields) {
    skip_space();
    if (!value(fields)) return std::string{text_};
    out_.append(text_, copied_);
    return std::move(out_);
  }

 private:
  // Each returns false if the text is not JSON. They begin at the first character and end behind
  // the last.

  // A list's elements have the fields that it has, but lists in lists are kept whole, so the depth
  // is that of `fields`.
  bool value(const KnownFields& fields) {
    if (fields.keeps_all() || at_ >= text_.size()) return skip_value();
    if (text_[at_] == '{') return object(fields);
    return text_[at_] == '[' ? list(fields) : skip_value();
  }

  bool list(const KnownFields& fields) {
    ++at_;
    skip_space();
    if (take(']')) return true;
    while (at_ < text_.size()) {
      if (!(text_[at_] == '{' ? object(fields) : skip_value())) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return false;
      skip_space();
    }
    return false;
  }

  // A member that is dropped takes the comma before it along; as long as none was kept, the comma
  // behind it.
  bool object(const KnownFields& fields) {
    ++at_;
    skip_space();
    if (take('}')) return true;
    bool kept = false;
    std::size_t drop_from = at_;
    while (at_ < text_.size()) {
      if (!kept) drop_from = at_;
      bool keep = false;
      if (!member(fields, keep)) return false;
      skip_space();
      const bool more = at_ < text_.size() && text_[at_] == ',';
      if (!keep) drop(drop_from, !kept && more ? at_ + 1 : at_);
      kept = kept || keep;
      drop_from = at_;
      if (take('}')) return true;
      if (!take(',')) return false;
      skip_space();
    }
    return false;
  }

  // The name of a field that we read has no escapes; a name that has some is kept, since it may be
  // one that is only written differently.
  bool member(const KnownFields& fields, bool& keep) {
    const std::size_t begin = at_ + 1;
    if (text_[at_] != '"' || !skip_string()) return false;
    const std::string_view name = text_.substr(begin, at_ - 1 - begin);
    const KnownFields* known = fields.find(name);
    keep = known != nullptr || name.find('\\') != std::string_view::npos;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return known == nullptr ? skip_value() : value(*known);
  }

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
    const char* const begin = text_.data() + at_ + 1;
    const char* const behind = end_of_string(begin, text_.data() + text_.size());
    if (behind == nullptr) return false;
    at_ = static_cast<std::size_t>(behind - text_.data());
    return true;
  }

  // Behind the quote that ends the string whose text begins at `at`; null if there is none.
  static const char* end_of_string(const char* at, const char* end) {
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

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void drop(std::size_t from, std::size_t to) {
    out_.append(text_, copied_, from - copied_);
    copied_ = to;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t copied_ = 0;  // the text up to here is in out_, or was dropped
  std::string out_;
};

}  // namespace

KnownFields& KnownFields::at(std::string_view name) {
  return members_[std::string{name}];
}

const KnownFields* KnownFields::find(std::string_view name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : &found->second;
}

void KnownFields::remove(std::initializer_list<std::string_view> path) {
  KnownFields* parent = this;
  for (const std::string_view& name : path) {
    const auto found = parent->members_.find(name);
    CHECK(found != parent->members_.end(), name);
    if (&name != path.end() - 1) {
      parent = &found->second;
      continue;
    }
    parent->members_.erase(found);
    // Without any name it would keep everything.
    CHECK(!parent->members_.empty(), name);
  }
}

std::string only_known(std::string_view text, const KnownFields& fields) {
  return Cutter{text}.cut(fields);
}

}  // namespace kube
