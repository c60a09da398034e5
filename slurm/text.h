// Small text helpers that the readers of Slurm's spellings share. Pure, no locale: ASCII only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurm {

// One "key=value" of a configuration line.
struct KeyValue {
  std::string key;
  std::string value;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

std::string lower_case(std::string_view text);
std::string_view trim(std::string_view text);
// Slurm compares keywords without case.
bool same_word(std::string_view a, std::string_view b);

// Returns the parts between separators; "" has none, "a,,b" has an empty one.
std::vector<std::string> split(std::string_view text, char separator);

// For messages: in double quotes, cut after 60 bytes, control characters as '?'.
std::string in_quotes(std::string_view text);

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int32_t>::max();
};
// Parses a decimal integer with nothing around it. `what` begins the message: "--nodes".
base::Result<std::int64_t> parse_integer(std::string_view what, std::string_view text,
                                         IntegerRange range);

// YES, TRUE, 1 or NO, FALSE, 0 (any case).
base::Result<bool> parse_boolean(std::string_view what, std::string_view text);

// Splits a command line as a POSIX shell does: blanks separate; quotes and backslash protect;
// nothing is expanded. kInvalidArgument: a quote is not closed.
base::Result<std::vector<std::string>> split_words(std::string_view line);

// Splits what stands behind #SBATCH as sbatch does. kEndsWithOne: a quote is not closed, or a word
// begins with a colon.
base::Result<std::vector<std::string>> split_directive(std::string_view line);

}  // namespace slurm
