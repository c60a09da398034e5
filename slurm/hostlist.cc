#include "slurm/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/natural_order.h"
#include "scheduler/model/cluster.h"

namespace slurm {
namespace {

// The grammar, with no space anywhere:
//
//   list    = [ element *( "," element ) ]
//   element = 1*( literal / group )
//   literal = 1*( letter / digit / "-" / "." / "_" )
//   group   = "[" range *( "," range ) "]"
//   range   = number [ "-" number ]
//
// An element stands for the product of its parts: a literal has one value, a group as many as its
// ranges contain. The reader therefore goes once from front to back and multiplies while it goes;
// the text has a bound, but the result can grow far beyond it, so every product is bounded
// before it is made (names, and bytes of a name).

// More digits than this would overflow, and no cluster counts so far.
constexpr std::size_t kDigitsMax = 18;

// ASCII only. std::isdigit() would depend on the locale, and a node's name must not.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Everything that a DNS name may hold, and '_', which Slurm's names may have and messages do not
// offer, because names of Kubernetes' nodes have none. Brackets and commas have a meaning in the
// grammar.
bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_';
}

// Leading zeros are part of a name: "n08" and "n8" are different nodes.
std::string padded(std::uint64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// Reads one hostlist from front to back. position_ is the next character to read: each function
// begins at the first character of the thing that it reads and leaves position_ behind its last
// one.
class Reader {
 public:
  // `text` must outlive the reader; names are copied out of it.
  explicit Reader(std::string_view text) : text_{text} {}

  // The bound on names is checked before they are made, element by element: "n[0-999]m[0-999]" must
  // not first fill the memory.
  base::Result<std::vector<std::string>> read() {
    std::vector<std::string> names;
    if (text_.empty()) return names;
    if (text_.size() > kHostlistBytesMax) {
      return base::invalid_argument("hostlist: longer than " + std::to_string(kHostlistBytesMax) +
                                    " bytes");
    }
    while (true) {
      base::Result<std::vector<std::string>> element =
          read_element(kHostlistNamesMax - names.size());
      if (!element) return element.error();
      names.insert(names.end(), element->begin(), element->end());
      if (position_ == text_.size()) return names;
      ++position_;  // the comma that ended the element
    }
  }

 private:
  // Every message shows the text, since a configuration holds many lists.
  base::Error wrong(const std::string& what) const {
    constexpr std::size_t kShownMax = 60;
    std::string shown{text_.substr(0, kShownMax)};
    if (text_.size() > kShownMax) shown += "…";
    // Shown in part: a list of a mebibyte would fill the event or the terminal that the message
    // goes to.
    return base::invalid_argument("hostlist \"" + shown + "\": " + what);
  }
  // Counted from 1, as editors count columns.
  std::string here() const { return " at character " + std::to_string(position_ + 1); }

  // Reads one element between commas: text and bracketed groups, at most `names_max` names. Each
  // round of the loop multiplies the names so far by the values of one part.
  base::Result<std::vector<std::string>> read_element(std::size_t names_max) {
    std::vector<std::string> names{""};
    const std::size_t begin = position_;
    while (position_ < text_.size() && text_[position_] != ',') {
      std::vector<std::string> parts;
      if (text_[position_] == '[') {
        base::Result<std::vector<std::string>> group = read_group(names_max);
        if (!group) return group.error();
        parts = std::move(group).value();
      } else {
        base::Result<std::string> literal = read_literal();
        if (!literal) return literal.error();
        parts.push_back(std::move(literal).value());
      }
      if (names.size() * parts.size() > names_max) return too_many();
      // Checked before the names are made: that many of them, each as long as the list, would fill
      // the memory.
      if (longest(names) + longest(parts) > kHostNameBytesMax) {
        return wrong("a name is longer than " + std::to_string(kHostNameBytesMax) + " characters");
      }
      names = product(names, parts);
    }
    if (position_ == begin) return wrong("an empty name" + here());
    return names;
  }

  // The whole bound and not the rest of it: a user cannot see how many names the elements before
  // had.
  base::Error too_many() const {
    return wrong("more than " + std::to_string(kHostlistNamesMax) + " names");
  }

  static std::size_t longest(const std::vector<std::string>& texts) {
    std::size_t most = 0;
    for (const std::string& text : texts) most = std::max(most, text.size());
    return most;
  }

  // Expands "r[1-2]n[1-2]": the last group counts fastest, as in Slurm: r1n1, r1n2, r2n1, r2n2.
  static std::vector<std::string> product(const std::vector<std::string>& heads,
                                          const std::vector<std::string>& tails) {
    std::vector<std::string> all;
    all.reserve(heads.size() * tails.size());
    for (const std::string& head : heads) {
      for (const std::string& tail : tails) all.push_back(head + tail);
    }
    return all;
  }

  // Ends before a comma, a bracket or the text's end. Any other character is a mistake, also a
  // blank behind a comma.
  base::Result<std::string> read_literal() {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_name_character(text_[position_])) ++position_;
    if (position_ < text_.size() && text_[position_] != ',' && text_[position_] != '[') {
      return wrong(std::string{"'"} + text_[position_] + "'" + here() +
                   "; a name is letters, digits, '-', '.' and [numbers]");
    }
    return std::string{text_.substr(begin, position_ - begin)};
  }

  // "[1-3,7]": the numbers as text. Slurm writes the width once, at the first number: "[08-10]" has
  // the width 2, so 8 becomes "08". The width of the second number says nothing. The loop ends at
  // the bracket, or at the text's end with a message about the bracket that opened the group.
  base::Result<std::vector<std::string>> read_group(std::size_t names_max) {
    const std::size_t open = position_++;
    std::vector<std::string> numbers;
    while (true) {
      const std::size_t low_begin = position_;
      const base::Result<std::uint64_t> low = read_number();
      if (!low) return low.error();
      const std::size_t width = position_ - low_begin;
      std::uint64_t high = *low;
      if (position_ < text_.size() && text_[position_] == '-') {
        ++position_;
        const base::Result<std::uint64_t> read = read_number();
        if (!read) return read.error();
        high = *read;
      }
      if (high < *low) {
        return wrong("the range " + std::to_string(*low) + "-" + std::to_string(high) +
                     " runs backwards");
      }
      // high - low is one less than the count of the range, hence ">=": no sum that could overflow.
      // The group alone must not exceed the bound, whatever stands before it.
      if (high - *low >= names_max - std::min(names_max, numbers.size())) return too_many();
      for (std::uint64_t n = *low; n <= high; ++n) numbers.push_back(padded(n, width));
      if (position_ == text_.size()) {
        return wrong("no ']' for the '[' at character " + std::to_string(open + 1));
      }
      const char separator = text_[position_++];
      if (separator == ']') return numbers;
      if (separator != ',') {
        --position_;
        return wrong(std::string{"'"} + separator + "'" + here() +
                     "; inside brackets are numbers and ranges: [1-3,7]");
      }
    }
  }

  // Digits only. More than kDigitsMax are refused while they are read, before the number can
  // overflow.
  base::Result<std::uint64_t> read_number() {
    const std::size_t begin = position_;
    std::uint64_t number = 0;
    while (position_ < text_.size() && is_digit(text_[position_])) {
      number = number * 10 + static_cast<std::uint64_t>(text_[position_++] - '0');
      if (position_ - begin > kDigitsMax) {
        return wrong("a number of more than " + std::to_string(kDigitsMax) + " digits");
      }
    }
    if (position_ == begin) return wrong("a number is missing" + here());
    return number;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

// The common parts of neighbors around the number in which they differ.
struct Frame {
  std::string_view prefix;
  std::string_view suffix;
};

bool are_digits(std::string_view text) {
  return !text.empty() && text.size() <= kDigitsMax &&
         std::all_of(text.begin(), text.end(), is_digit);
}

// Returns the number that a name has within the frame; empty = it is of another frame. A frame's
// prefix does not end in a digit and its suffix does not begin with one, so it is the whole number.
std::string_view number_within(const Frame& frame, std::string_view name) {
  const std::size_t around = frame.prefix.size() + frame.suffix.size();
  if (name.size() <= around || !name.starts_with(frame.prefix) || !name.ends_with(frame.suffix)) {
    return {};
  }
  const std::string_view number = name.substr(frame.prefix.size(), name.size() - around);
  return are_digits(number) ? number : std::string_view{};
}

// Finds which of several numbers counts up, by two names: nodes are "rack1-n7", "n7.rack1" or
// "ip-10-0-1-7.eu-west-1.compute.internal". nullopt if the names differ in more than one number.
std::optional<Frame> frame_of(std::string_view a, std::string_view b) {
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  while (begin > 0 && is_digit(a[begin - 1])) --begin;
  std::size_t end = begin;
  while (end < a.size() && is_digit(a[end])) ++end;
  const Frame frame{a.substr(0, begin), a.substr(end)};
  if (number_within(frame, a).empty() || number_within(frame, b).empty()) return std::nullopt;
  return frame;
}

// REQUIRES: at most kDigitsMax digits, as number_within() ensures, so the sum does not overflow:
// 10^18 is below 2^63.
std::uint64_t number_of(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

// Numbers of two or more names of one frame, as "prefix[1-3,7]suffix". A run goes on as long as the
// next number is one more, padded as the first of the run: 08, 09, 10 are a run; 8 and 09 are not,
// since expanding pads a range as its first number is.
std::string write_group(const Frame& frame, std::span<const std::string_view> numbers) {
  std::string text{frame.prefix};
  for (std::size_t first = 0; first < numbers.size();) {
    const std::size_t width = numbers[first].size();
    std::size_t last = first;
    // Compared as text and not as numbers: "009" follows "008", "9" does not.
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == padded(number_of(numbers[last]) + 1, width)) {
      ++last;
    }
    text.append(first == 0 ? "[" : ",").append(numbers[first]);
    if (last != first) text.append("-").append(numbers[last]);
    first = last + 1;
  }
  return text.append("]").append(frame.suffix);
}

}  // namespace

// Cost: one pass over the text and one string per name.
base::Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  return Reader{text}.read();
}

// Each run of separators outside brackets becomes one comma.
base::Result<std::vector<std::string>> expand_node_list(std::string_view text) {
  std::string plain;
  int depth = 0;
  bool separated = false;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth == 0 && (c == ',' || c == ' ' || c == '\t')) {
      separated = true;
      continue;
    }
    if (separated && !plain.empty()) plain += ',';
    separated = false;
    plain += c;
  }
  return expand_hostlist(plain);
}

// 1. Sort in natural order and drop repetitions, so that equal sets have equal texts.
// 2. Join neighbors that differ in one number into one group of ranges. A single name is written as
//    it is: users compare what a status shows with the names of their nodes.
// The order of the sort is the order of an allocation's nodes, and the ranks of a job's tasks
// follow from it. Joining n1-a and n2-a across n1-b would be shorter but would change that order,
// so only neighbors are joined.
//
// Cost: n log n comparisons of names, and one padded number per name.
std::string compress_hostlist(std::span<const std::string> names) {
  std::vector<std::string_view> sorted{names.begin(), names.end()};
  std::sort(sorted.begin(), sorted.end(), base::natural_less);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  std::string text;
  std::vector<std::string_view> numbers;
  for (std::size_t begin = 0; begin < sorted.size();) {
    if (!text.empty()) text += ',';
    const std::optional<Frame> frame =
        begin + 1 < sorted.size() ? frame_of(sorted[begin], sorted[begin + 1]) : std::nullopt;
    if (!frame) {
      text += sorted[begin++];
      continue;
    }
    numbers.clear();
    for (; begin < sorted.size(); ++begin) {
      const std::string_view number = number_within(*frame, sorted[begin]);
      if (number.empty()) break;
      numbers.push_back(number);
    }
    text += write_group(*frame, numbers);
  }
  return text;
}

}  // namespace slurm
