#include "slurm/hostlist.h"

#include <algorithm>
#include <cstdint>
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

// Everything that a DNS name may hold, and '_'. Brackets and commas have a meaning in the grammar.
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

  // One element between commas: text and bracketed groups, at most `names_max` names. Each round of
  // the loop multiplies the names so far by the values of one part.
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
      // Before the names are made: so many of them, each as long as the list, would fill the
      // memory.
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

  // "r[1-2]n[1-2]": the last group counts fastest, as in Slurm: r1n1, r1n2, r2n1, r2n2.
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
                   "; a name is letters, digits, '-', '.', '_' and [numbers]");
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

// A name taken apart at its last run of digits.
struct Split {
  std::string_view prefix;
  std::string_view digits;  // empty = the name has no usable number
  std::string_view suffix;
};

// Nodes are usually numbered at the end of their names, perhaps before a suffix such as "-ib". Of a
// name with several numbers only the last becomes a range: "r1n[1-2]".
Split split_at_last_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  if (begin == end || end - begin > kDigitsMax) return {name, {}, {}};
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

// At most kDigitsMax digits, as split_at_last_number() ensures, so the sum does not overflow: 10^18
// is below 2^63.
std::uint64_t number_of(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

// Names [begin, end) that share prefix and suffix, as "prefix[1-3,7]suffix".
// A run goes on as long as the next name is the number plus one, padded as the first of the run:
// 08, 09, 10 are a run; 8 and 09 are not, since expanding pads a range as its first number is.
// The shape without brackets for a single name matters: "n[1]" would be read back as "n1", but
// users compare what a status shows with the names of their nodes.
std::string write_group(std::span<const Split> group) {
  std::string ranges;
  bool several = false;
  for (std::size_t first = 0; first < group.size();) {
    const std::size_t width = group[first].digits.size();
    std::size_t last = first;
    // As text and not as numbers: "009" follows "008", "9" does not.
    while (last + 1 < group.size() &&
           group[last + 1].digits == padded(number_of(group[last].digits) + 1, width)) {
      ++last;
    }
    several = several || first != 0 || last != first;
    if (first != 0) ranges += ',';
    ranges += group[first].digits;
    if (last != first) ranges.append("-").append(group[last].digits);
    first = last + 1;
  }
  std::string text{group.front().prefix};
  text += several ? "[" + ranges + "]" : ranges;
  return text.append(group.front().suffix);
}

}  // namespace

// Cost: one pass over the text and one string per name.
base::Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  return Reader{text}.read();
}

// 1. Sort in natural order and drop repetitions, so that equal sets have equal texts.
// 2. Join neighbors that share prefix and suffix into one group of ranges.
// The order of the sort is the order of an allocation's nodes, and the ranks of a job's tasks
// follow from it. Joining n1-a and n2-a across n1-b would be shorter but would change that order,
// so only neighbors are joined.
//
// Cost: n log n comparisons of names, and one padded number per name.
std::string compress_hostlist(std::span<const std::string> names) {
  std::vector<std::string_view> sorted{names.begin(), names.end()};
  std::sort(sorted.begin(), sorted.end(), base::natural_less);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  std::vector<Split> splits;
  splits.reserve(sorted.size());
  for (const std::string_view name : sorted) splits.push_back(split_at_last_number(name));

  std::string text;
  for (std::size_t begin = 0; begin < splits.size();) {
    std::size_t end = begin + 1;
    // Only neighbors are joined, so that expanding keeps the order.
    while (end < splits.size() && !splits[begin].digits.empty() && !splits[end].digits.empty() &&
           splits[end].prefix == splits[begin].prefix &&
           splits[end].suffix == splits[begin].suffix) {
      ++end;
    }
    if (!text.empty()) text += ',';
    if (splits[begin].digits.empty()) {
      text += splits[begin].prefix;
    } else {
      text += write_group(std::span{splits}.subspan(begin, end - begin));
    }
    begin = end;
  }
  return text;
}

}  // namespace slurm
