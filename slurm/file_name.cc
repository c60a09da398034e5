#include "slurm/file_name.h"

#include <algorithm>
#include <optional>

namespace slurm {
namespace {

// Slurm's own bound on the width of a number.
constexpr std::size_t kWidthMax = 10;
// SOURCE: recorded: Slurm's NO_VAL, of a job that is in no array.
constexpr const char* kNoTask = "4294967294";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<std::string> value_of(char letter, const NameParts& parts) {
  switch (letter) {
    case 'j':
      return parts.job_id;
    case 'A':
      return parts.array_id.empty() ? parts.job_id : parts.array_id;
    case 'a':
      if (parts.array_task.empty() && !parts.array_id.empty()) return std::nullopt;  // all of them
      return parts.array_task.empty() ? kNoTask : parts.array_task;
    case 'J':
      return parts.job_id;  // and the step, if there is one
    case 's':
      return parts.step_id;
    case 'x':
      return parts.job_name;
    case 'u':
      return parts.user;
    case 'N':
      return parts.node.empty() ? std::nullopt : std::optional{parts.node};
    case 'n':
      return std::to_string(parts.node_index);
    case 't':
      return std::to_string(parts.task);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

// Returns the letters of all patterns in the text.
std::string letters_in(std::string_view pattern) {
  std::string letters;
  if (pattern.find('\\') != std::string_view::npos) return letters;
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    while (i + 1 < pattern.size() && is_digit(pattern[i + 1])) ++i;
    if (i + 1 < pattern.size()) letters += pattern[++i];
  }
  return letters;
}

}  // namespace

std::string file_name(std::string_view pattern, const NameParts& parts) {
  std::string name;
  const bool is_plain = pattern.find('\\') != std::string_view::npos;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') continue;
    if (is_plain || pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    std::size_t at = i + 1;
    std::size_t width = 0;
    while (at < pattern.size() && is_digit(pattern[at])) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[at++] - '0'), kWidthMax);
    }
    const bool has_width = at > i + 1;
    const char letter = at < pattern.size() ? pattern[at] : '\0';
    const auto value = letter == '%' && has_width ? std::nullopt : value_of(letter, parts);
    if (!value) {
      // SOURCE: recorded: the digits of a width stay, without their %.
      if (!has_width) name += '%';
      continue;
    }
    const bool is_number = !value->empty() && std::all_of(value->begin(), value->end(), is_digit);
    if (is_number && value->size() < width) name.append(width - value->size(), '0');
    name += *value;
    if (letter == 'J' && parts.step_id != "batch") name += "." + parts.step_id;
    i = at;
  }
  return name;
}

bool names_tasks(std::string_view pattern) {
  return letters_in(pattern).find('t') != std::string::npos;
}

}  // namespace slurm
