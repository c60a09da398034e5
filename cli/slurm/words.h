// Command lines of Slurm's commands: options as getopt_long() takes them, by a table.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cluster/session.h"

namespace cli {

// Calls `use` with a session; tells an error of the connection itself.
using WithCluster = std::function<int(const std::function<int(const Session&)>& use)>;

enum class WordTakes { kNothing, kValue, kMaybeValue };

struct WordOption {
  char letter;  // '\0': none
  std::string_view name;
  WordTakes takes;
};

struct ReadOption {
  std::string name;  // the long one
  std::string value;
};

struct ReadWords {
  std::vector<ReadOption> options;  // in order
  std::vector<std::string> rest;
};

// Options may stand behind other words, but not behind "--". kInvalidArgument: an option that is
// not in the table, or a value that is missing.
base::Result<ReadWords> read_words(std::span<const WordOption> table,
                                   std::span<const std::string> words);

// "a,b" without empty parts.
std::vector<std::string> list_of(std::string_view text);

}  // namespace cli
