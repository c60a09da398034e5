#include "scheduler/place/constraint.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace sched {

// A recursive-descent parser of one level:
//
//    expression = item { ("&" | "," | "|") item }
//    item       = "[" feature { joint feature } "]" | "(" feature { joint feature } ")" | feature
//    feature    = name [ "*" number ]
//
// A feature with a count is kept apart from the terms: it filters nothing, but asks for that many
// nodes.
//
// For example, "[rack1|rack2]&ssd&gpu*2" has the alternatives rack1 and rack2, the term ssd, and
// two nodes that count for gpu.
class ConstraintParser {
 public:
  explicit ConstraintParser(std::string_view text) : text_{text} {}

  base::Result<Constraint> run() {
    bool joined_by_or = false;
    while (at_ < text_.size()) {
      if (base::Status status = item(joined_by_or); !status.ok()) return status.error();
      if (at_ == text_.size()) break;
      if (base::Status status = joint(joined_by_or); !status.ok()) return status.error();
      if (at_ == text_.size()) return bad("a feature is missing at the end");
    }
    return std::move(result_);
  }

 private:
  base::Error bad(const std::string& why) const {
    return base::invalid_argument("constraint \"" + std::string{text_} + "\": " + why +
                                  " (at character " + std::to_string(at_ + 1) + ")");
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // A comma means "&".
  base::Status joint(bool& joined_by_or) {
    if (take('|')) {
      joined_by_or = true;
    } else if (take('&') || take(',')) {
      joined_by_or = false;
    } else {
      return bad("& or | is missing");
    }
    return {};
  }

  // A name is everything up to the next character of the grammar; labels have no other rules here.
  base::Result<std::string> name() {
    const std::size_t from = at_;
    while (at_ < text_.size() &&
           std::string_view{"&|,*()[]"}.find(text_[at_]) == std::string_view::npos)
      ++at_;
    if (at_ == from) return bad("a feature is missing");
    return std::string{text_.substr(from, at_ - from)};
  }

  // Returns the number behind *, or 0 when there is none.
  base::Result<int> count() {
    if (!take('*')) return 0;
    int value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 1) return bad("a count of at least 1 is missing behind *");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  // Reads an expression's item: a matching OR, a group, or a feature. Parentheses are one level
  // deep, so group() reads features and nothing else.
  base::Status item(bool joined_by_or) {
    if (take('[')) return bracket();
    if (take('(')) return group(joined_by_or);
    return feature(joined_by_or, result_.terms_);
  }

  // Reads the next feature; nothing of one with a count, which is kept by itself.
  base::Result<std::optional<std::string>> uncounted() {
    std::optional<std::string> plain;
    auto feature_name = name();
    if (!feature_name.ok()) return feature_name.error();
    const auto number = count();
    if (!number.ok()) return number.error();
    if (*number > 0) {
      // How it was joined to its neighbors does not matter: all counts must be met.
      result_.counted_.push_back({*std::move(feature_name), *number});
    } else {
      plain = *std::move(feature_name);
    }
    return plain;
  }

  // Terms are kept in the order in which they are written: evaluation goes from left to right
  // without precedence (4.2.3), so "a|b&c" means (a or b) and c.
  base::Status feature(bool joined_by_or, std::vector<Constraint::Term>& into) {
    auto plain = uncounted();
    if (!plain.ok()) return plain.error();
    if (*plain) into.push_back({joined_by_or, std::move(**plain), {}});
    return {};
  }

  // `joined_by_or` is how the group as a whole is joined to what stands before it; `inner_or` joins
  // the features in it.
  base::Status group(bool joined_by_or) {
    Constraint::Term term{joined_by_or, {}, {}};
    bool inner_or = false;
    while (true) {
      if (base::Status status = feature(inner_or, term.group); !status.ok()) return status;
      if (take(')')) break;
      if (base::Status status = joint(inner_or); !status.ok()) return status;
    }
    // A group of counted features alone leaves no term; an empty one would match nothing.
    if (!term.group.empty()) result_.terms_.push_back(std::move(term));
    return {};
  }

  base::Status bracket() {
    bool inner_or = false;
    while (true) {
      auto plain = uncounted();
      if (!plain.ok()) return plain.error();
      // Slurm's brackets, "matching OR": the alternatives are tried one after the other, each for
      // all nodes of the job.
      if (*plain) result_.alternatives_.push_back(std::move(**plain));
      if (take(']')) return {};
      if (base::Status status = joint(inner_or); !status.ok()) return status;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Constraint result_;
};

base::Result<Constraint> Constraint::parse(std::string_view expression) {
  return ConstraintParser{expression}.run();
}

// Cost: O(terms × features of the node).
bool Constraint::evaluate(const std::vector<Term>& terms,
                          const std::vector<std::string>& features) {
  bool value = true;
  bool first = true;
  for (const Term& term : terms) {
    const bool holds = term.group.empty() ? std::find(features.begin(), features.end(),
                                                      term.feature) != features.end()
                                          : evaluate(term.group, features);
    // Only features with counts can stand on its left, and these are not terms.
    if (first) {
      value = holds;
    } else {
      value = term.joined_by_or ? (value || holds) : (value && holds);
    }
    first = false;
  }
  return value;
}

// For a single node. matching() does the same for sets; counts and alternatives are not looked at
// by either, since they are about the job's nodes together.
bool Constraint::matches(const std::vector<std::string>& features) const {
  return evaluate(terms_, features);
}

}  // namespace sched
