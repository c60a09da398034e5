#include "slurm/text.h"

#include <charconv>

#include "slurm/exit_code.h"

namespace slurm {
namespace {

// ASCII only: Slurm's keywords are, and the C library's tolower() would follow the user's locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The carriage return belongs to them, so that files with the line ends of Windows can be read.
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

// Bytes above 127 stay as they are, so text in UTF-8 is not damaged.
std::string lower_case(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = lower(c);
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Slurm compares keys and keywords without regard to case.
bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// Empty parts are kept: "a,,b" has three. The callers say whether that is an error.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// For messages, which may go into events and terminals: bounded, and without control characters.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kShownMax)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  if (text.size() > kShownMax) out += "…";
  return out + "\"";
}

// The whole text must be the number: neither a sign "+" nor blanks nor a unit.
base::Result<std::int64_t> parse_integer(std::string_view what, std::string_view text,
                                         IntegerRange range) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error == std::errc::invalid_argument || stopped != end) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": not a whole number");
  }
  if (error == std::errc::result_out_of_range || number < range.min || number > range.max) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) + ": must be from " +
                                  std::to_string(range.min) + " to " + std::to_string(range.max));
  }
  return number;
}

// A misspelling is refused: it must not mean NO in silence.
base::Result<bool> parse_boolean(std::string_view what, std::string_view text) {
  for (const std::string_view yes : {"yes", "true", "1"}) {
    if (same_word(text, yes)) return true;
  }
  for (const std::string_view no : {"no", "false", "0"}) {
    if (same_word(text, no)) return false;
  }
  return base::invalid_argument(std::string{what} + " " + in_quotes(text) + ": say YES or NO");
}

// Quotes group and are dropped; a backslash takes the next character as it is, but not within
// single quotes. '' is an empty word. Nothing is expanded: no variables, no patterns. A quote that
// is not closed is an error and not the end of the text: the rest of the line would become one word
// in silence.
base::Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    // A blank ends a word, unless it is quoted.
    const char c = line[i];
    if (quote == 0 && is_blank(c)) {
      in_word = false;
      continue;
    }
    // The first character of a word makes it, also if that is a quote: so '' is a word.
    if (!in_word) {
      words.emplace_back();
      in_word = true;
    }
    // The quotes themselves are dropped: --name="a b" is one word.
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) {
    return base::invalid_argument(in_quotes(line) + ": the quote " + std::string(1, quote) +
                                  " is not closed");
  }
  return words;
}

// SOURCE: recorded (session backslashes). A # outside quotes begins a comment, within a word too. A
// backslash protects in single quotes, too, but no blank outside of quotes: there it ends the word,
// and at the end of the line it is nothing. An empty word ends the line.
base::Result<std::vector<std::string>> split_directive(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t i = 0;;) {
    while (i < line.size() && is_blank(line[i])) ++i;
    if (i < line.size() && line[i] == ':') {
      return base::Error{kEndsWithOne, in_quotes(line) + ": a word begins with a colon"};
    }
    std::string word;
    char quote = 0;
    bool is_protected = false;
    for (; i < line.size() && (quote != 0 || !is_blank(line[i])); ++i) {
      const char c = line[i];
      if (is_protected) {
        word += c;
        is_protected = false;
      } else if (c == '\\') {
        is_protected = true;
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else if (quote == 0 && c == '#') {
        break;
      } else {
        word += c;
      }
    }
    if (quote != 0) {
      return base::Error{kEndsWithOne, in_quotes(line) + ": the quote " + std::string(1, quote) +
                                           " is not closed"};
    }
    if (word.empty()) return words;
    words.push_back(std::move(word));
  }
}

}  // namespace slurm
