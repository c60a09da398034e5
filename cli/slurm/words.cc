#include "cli/slurm/words.h"

#include <algorithm>
#include <cstdlib>

#include "slurm/text.h"

namespace cli {
namespace {

constexpr std::string_view kVersion = "slurm 22.05.8 (kubegang)\n";

base::Error unknown(const std::string& word) {
  return base::invalid_argument("option " + word + " does not exist or is not there yet");
}

std::string spelling(const WordOption& option) {
  std::string text = option.letter == '\0' ? "    " : std::string{'-', option.letter, ',', ' '};
  if (!option.name.empty()) text += "--" + std::string{option.name};
  if (option.takes == WordTakes::kValue) text += "=VALUE";
  if (option.takes == WordTakes::kMaybeValue) text += "[=VALUE]";
  return text;
}

// Returns the option of this long name, or the only one that begins so, as getopt_long() has it.
const WordOption* find_long(std::span<const WordOption> table, std::string_view name) {
  const WordOption* found = nullptr;
  for (const WordOption& option : table) {
    if (option.name == name) return &option;
    if (name.empty() || !option.name.starts_with(name)) continue;
    if (found != nullptr) return nullptr;
    found = &option;
  }
  return found;
}

const WordOption* find_short(std::span<const WordOption> table, char letter) {
  const auto found = std::ranges::find(table, letter, &WordOption::letter);
  return found == table.end() ? nullptr : &*found;
}

// Adds the option of word `i`, whose value is `joined` or else the next word.
base::Status take(const WordOption& option, std::optional<std::string> joined,
                  std::span<const std::string> words, std::size_t& i, ReadWords& read) {
  if (!option.refused.empty()) {
    return base::invalid_argument("--" + std::string{option.name} + ": " +
                                  std::string{option.refused});
  }
  std::string value = joined.value_or("");
  if (option.takes == WordTakes::kValue && !joined) {
    if (i + 1 >= words.size()) return base::invalid_argument(words[i] + ": a value is missing");
    value = words[++i];
  }
  read.options.push_back({std::string{option.name}, value});
  return {};
}

base::Status read_long(std::span<const WordOption> table, std::span<const std::string> words,
                       std::size_t& i, ReadWords& read) {
  const std::string& word = words[i];
  const std::size_t equals = word.find('=');
  const WordOption* const option = find_long(table, std::string_view{word}.substr(2, equals - 2));
  const bool has_value = equals != std::string::npos;
  if (option == nullptr || (has_value && option->takes == WordTakes::kNothing)) {
    return unknown(word);
  }
  const auto joined = has_value ? std::optional{word.substr(equals + 1)} : std::nullopt;
  return take(*option, joined, words, i, read);
}

// Several letters may stand in one word, the last one with its value: "-hj99".
base::Status read_short(std::span<const WordOption> table, std::span<const std::string> words,
                        std::size_t& i, ReadWords& read) {
  const std::string& word = words[i];
  for (std::size_t at = 1; at < word.size(); ++at) {
    const WordOption* const option = find_short(table, word[at]);
    if (option == nullptr) return unknown(std::string{'-', word[at]});
    const bool takes = option->takes != WordTakes::kNothing;
    const auto joined =
        takes && at + 1 < word.size() ? std::optional{word.substr(at + 1)} : std::nullopt;
    if (const base::Status taken = take(*option, joined, words, i, read); !taken) return taken;
    if (takes) break;
  }
  return {};
}

}  // namespace

base::Result<ReadWords> read_words(std::span<const WordOption> table,
                                   std::span<const std::string> words) {
  ReadWords read;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      read.rest.insert(read.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       words.end());
      break;
    }
    if (word.size() < 2 || word.front() != '-') {
      read.rest.push_back(word);
      continue;
    }
    const base::Status status =
        word[1] == '-' ? read_long(table, words, i, read) : read_short(table, words, i, read);
    if (!status) return status.error();
  }
  return read;
}

base::Result<ReadWords> read_options(std::span<const WordOption> table,
                                     std::span<const std::string> words) {
  auto read = read_words(table, words);
  if (read && !read->rest.empty()) {
    return base::invalid_argument("Unrecognized option: " + read->rest.front());
  }
  return read;
}

void add_variables(std::span<const InputVariable> variables, ReadWords& words) {
  for (const InputVariable& variable : variables) {
    const char* value = std::getenv(variable.name);
    const bool is_said = std::ranges::any_of(
        words.options, [&](const ReadOption& option) { return option.name == variable.option; });
    if (value != nullptr && !is_said) {
      words.options.push_back({std::string{variable.option}, value});
    }
  }
}

// SOURCE: the version is that of the Slurm whose answers the recordings have.
std::vector<std::string> words_of_variables(std::span<const InputVariable> variables) {
  std::vector<std::string> words;
  for (const InputVariable& variable : variables) {
    const char* const value = std::getenv(variable.name);
    if (value != nullptr) words.push_back(std::string{variable.option} + "=" + value);
  }
  return words;
}

std::optional<std::string> answer_about_itself(std::string_view command,
                                               std::span<const WordOption> table,
                                               std::span<const std::string> words) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("--version") || has("-V")) return std::string{kVersion};
  if (!has("--help") && !has("--usage")) return std::nullopt;
  std::string text = "Usage: " + std::string{command} + " [OPTIONS]\n\n";
  for (const WordOption& option : table) {
    const std::string left = "  " + spelling(option);
    text += left + std::string(std::max<std::size_t>(28, left.size() + 2) - left.size(), ' ') +
            (option.refused.empty() ? std::string{option.what}
                                    : "refused: " + std::string{option.refused}) +
            "\n";
  }
  return text + "\n" + "docs/reference/slurm-commands.md lists what else it has.\n";
}

bool asks_about_command(std::string_view word) {
  return word == "--help" || word == "-h" || word == "--usage" || word == "--version" ||
         word == "-V";
}

std::string answer_about_command(std::string_view command, std::string_view arguments,
                                 std::string_view word, const std::string& more) {
  if (word == "--version" || word == "-V") return std::string{kVersion};
  return "Usage: " + std::string{command} + " [OPTIONS] " + std::string{arguments} + "\n\n" + more +
         "\n" + "docs/from-slurm.md says what differs.\n";
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> parts = slurm::split(text, ',');
  std::erase(parts, "");
  return parts;
}

}  // namespace cli
