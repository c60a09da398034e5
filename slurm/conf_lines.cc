#include "slurm/conf_lines.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "slurm/conf_actions.h"

namespace slurm {
namespace {

// Three formats share this file, because all of them are lines of keys and values to the readers
// behind it:
// 1. slurm.conf: "Key=value Key=value", with '#' comments and lines continued by a backslash.
// 2. `sacctmgr dump`: "Kind - name:key=value:key=value".
// 3. `sacctmgr --parsable2 show`: a line of titles, then lines of values, with '|' between them.
// The readers of keys (conf.h) see none of these forms: they get keys and values.

// Calls visit(number, line) for each line.
template <typename Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    visit(number, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

constexpr std::string_view kBlanks = " \t\r";

// Takes the text up to a blank, which is cut off the front of `line`.
std::string_view take_word(std::string_view& line, std::string_view end) {
  const std::string_view word = line.substr(0, line.find_first_of(end));
  line.remove_prefix(word.size());
  return word;
}

// A backslash takes the next character as it is and vanishes.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

// A value begins after "=" and blanks. It is in double quotes or ends at a blank. nullopt if the
// quotes are not closed.
std::optional<std::string> take_value(std::string_view& line) {
  if (!line.starts_with('"')) return without_escapes(take_word(line, kBlanks));
  const std::size_t end = line.find('"', 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view value = line.substr(1, end - 1);
  line.remove_prefix(end + 1);
  return without_escapes(value);
}

// Reads "Key=value Key = value". SOURCE: Slurm's parse_config.c, keyvalue_pattern: a key is
// letters, digits, '_' and '.', and blanks may stand on both sides of the "=". A word without "="
// is refused, but for "include FILE", which becomes the key Include.
base::Result<std::vector<KeyValue>> read_keys(std::string_view line) {
  std::vector<KeyValue> keys;
  std::string_view secret;  // a key before, whose value may go on here: a password with a blank
  const auto shown = [&](std::string_view text) {
    return secret.empty() ? in_quotes(text) : "the text behind " + std::string{secret};
  };
  const auto skip_blanks = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  };
  for (skip_blanks(); !line.empty(); skip_blanks()) {
    const std::string_view key = take_word(line, " \t\r=");
    skip_blanks();
    if (keys.empty() && same_word(key, kIncludeKey) && !line.empty() && !line.starts_with('=')) {
      keys.push_back({std::string{kIncludeKey}, std::string{take_word(line, kBlanks)}});
      return keys;
    }
    const bool is_key = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    });
    if (!is_key || !line.starts_with('=')) {
      return base::invalid_argument(shown(key) + ": not key=value");
    }
    line.remove_prefix(1);
    skip_blanks();
    if (is_secret_key(key)) secret = key;
    std::optional<std::string> value = take_value(line);
    if (!value) return base::invalid_argument(shown(line) + ": the quote \" is not closed");
    keys.push_back({std::string{key}, std::move(*value)});
  }
  return keys;
}

// Cuts the comment off: it begins at a '#' that has no backslash before it.
std::string_view without_comment(std::string_view line) {
  bool escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !escaped) return line.substr(0, i);
    escaped = line[i] == '\\' && !escaped;
  }
  return line;
}

// Reads the parts between ':' outside quotes, without the quotes. sacctmgr quotes values that hold
// its separators, as descriptions often do. A backslash within quotes has no meaning. A quote that
// is not closed lasts to the line's end.
std::vector<std::string> split_dump(std::string_view text) {
  std::vector<std::string> parts{""};
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? char{0} : c;
    } else if (c == ':' && quote == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Reads "Kind - name:key=value:key=value", each part in quotes if necessary. nullopt: the text has
// no " - " and so is not such a line. A part without '=' is a key without a value.
std::optional<DumpLine> read_dump_line(std::size_t number, std::string_view text) {
  constexpr std::string_view kDash = " - ";
  const std::size_t dash = text.find(kDash);
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> parts = split_dump(text.substr(dash + kDash.size()));
  DumpLine line{.number = number,
                .kind = std::string{trim(text.substr(0, dash))},
                .name = parts.front(),
                .keys = {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto [key, value] = split_option(parts[i]);
    line.keys.push_back({std::string{trim(key)}, std::string{value}});
  }
  return line;
}

}  // namespace

// A line that is continued counts by the number of its first line, which is where a user looks for
// a mistake in it. A line that cannot be read does not stop the others, so that a caller can report
// all mistakes at once. Three rules of Slurm's reader decide the order of the steps for each line
// (SOURCE: parse_config.c, _get_next_line):
// 1. '#' begins a comment, wherever it stands. Quotes do not protect it, a backslash does.
// 2. A backslash at the end of what is left joins the next line, with nothing between them: a value
//    may go on there.
// 3. Only a whole line is split into words, because quotes may span a continuation.
ConfLines read_conf_lines(std::string_view text) {
  ConfLines read;
  std::string joined;
  std::size_t first = 1;
  const auto end_line = [&] {
    base::Result<std::vector<KeyValue>> keys = read_keys(std::exchange(joined, {}));
    if (!keys) {
      read.errors.push_back({first, keys.error().message});
    } else if (!keys->empty()) {
      read.lines.push_back({first, std::move(*keys)});
    }
  };
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    // The comment goes first, so that a backslash in it continues nothing.
    line = without_comment(line);
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (joined.empty()) first = number;
    const bool continued = line.ends_with('\\');
    if (continued) line.remove_suffix(1);
    joined.append(line);
    if (!continued) end_line();
  });
  if (!joined.empty()) end_line();  // nothing follows the last line's backslash
  return read;
}

// Lines that sacctmgr writes for people, "# To edit this file…", begin with '#' and are skipped.
DumpLines read_dump_lines(std::string_view text) {
  DumpLines read;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    line = trim(line);
    if (line.empty() || line.front() == '#') return;
    std::optional<DumpLine> one = read_dump_line(number, line);
    if (one) {
      read.lines.push_back(std::move(*one));
    } else {
      read.errors.push_back({number, in_quotes(line) + ": no line of sacctmgr dump"});
    }
  });
  return read;
}

// Each line of values becomes a line of keys, the titles being the keys. An empty value means that
// nothing is set, and is left out.
ConfLines read_parsable_lines(std::string_view text) {
  ConfLines read;
  std::vector<std::string> titles;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    line = trim(line);
    if (line.empty()) return;
    const std::vector<std::string> values = split(line, '|');
    if (titles.empty()) {
      titles = values;
      return;
    }
    // `sacctmgr -P` shortens no line, but a person may have: columns that are missing at the end
    // count as empty.
    ConfLine one{.number = number, .keys = {}};
    for (std::size_t i = 0; i < std::min(values.size(), titles.size()); ++i) {
      if (!values[i].empty()) one.keys.push_back({titles[i], values[i]});
    }
    if (!one.keys.empty()) read.lines.push_back(std::move(one));
  });
  return read;
}

}  // namespace slurm
