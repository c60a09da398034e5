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

// Calls a function with a session; tells an error of the connection itself.
class WithCluster {
 public:
  using Use = std::function<int(const Session&)>;
  // `context` is one of the kubeconfig, "" the present one.
  using Open = std::function<int(const std::string& context, const Use& use)>;

  explicit WithCluster(Open open) : open_{std::move(open)} {}
  int operator()(const Use& use) const { return open_(context_, use); }
  // Returns the same for another cluster: --clusters of Slurm's commands names a context.
  WithCluster in(const std::string& context) const {
    WithCluster other{open_};
    other.context_ = context;
    return other;
  }

 private:
  Open open_;
  std::string context_;
};

enum class WordTakes { kNothing, kValue, kMaybeValue };

struct WordOption {
  char letter;  // '\0': none
  std::string_view name;
  WordTakes takes;
  std::string_view what{};     // it does, for --help and docs/reference; "": as `refused`
  std::string_view refused{};  // why it is, "" if it is not
};

struct ReadOption {
  std::string name;  // the long one
  std::string value;
};

struct ReadWords {
  std::vector<ReadOption> options;  // in order
  std::vector<std::string> rest;
};

// Options may stand behind other words, but not behind "--"; long ones may be abbreviated.
// kInvalidArgument: an option that is not in the table or that is refused there, or a value that is
// missing.
base::Result<ReadWords> read_words(std::span<const WordOption> table,
                                   std::span<const std::string> words);

// Reads as read_words(), for a command that takes options alone: any other word is an error.
base::Result<ReadWords> read_options(std::span<const WordOption> table,
                                     std::span<const std::string> words);

// An option that an environment variable of Slurm's sets, unless the command line has it.
struct InputVariable {
  const char* name;
  std::string_view option;
};
// Returns the words that those set say, "--partition=main", to stand before the command line's.
std::vector<std::string> words_of_variables(std::span<const InputVariable> variables);
// Adds them to the options; one without a value counts as set.
void add_variables(std::span<const InputVariable> variables, ReadWords& words);

// Answers --help, --usage and --version, which all of Slurm's commands have, from the table.
// nullopt if none of them stands there.
std::optional<std::string> answer_about_itself(std::string_view command,
                                               std::span<const WordOption> table,
                                               std::span<const std::string> words);

// The same for commands whose options are sbatch's, with other words behind them ("SCRIPT"). A word
// of a command line asks for it if asks_about_command() says so.
bool asks_about_command(std::string_view word);
std::string answer_about_command(std::string_view command, std::string_view arguments,
                                 std::string_view word, const std::string& more);

// Splits "a,b" without empty parts.
std::vector<std::string> list_of(std::string_view text);

}  // namespace cli
