#include "cli/slurm/words.h"

#include <algorithm>

#include "slurm/text.h"

namespace cli {
namespace {

base::Error unknown(const std::string& word) {
  return base::invalid_argument("option " + word + " does not exist or is not there yet");
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
    const auto take = [&](const WordOption& option, std::optional<std::string> joined) {
      std::string value = joined.value_or("");
      if (option.takes == WordTakes::kValue && !joined) {
        if (i + 1 >= words.size()) return false;
        value = words[++i];
      }
      read.options.push_back({std::string{option.name}, value});
      return true;
    };
    if (word[1] == '-') {
      const std::size_t equals = word.find('=');
      const auto option =
          std::ranges::find(table, std::string_view{word}.substr(2, equals - 2), &WordOption::name);
      const bool has_value = equals != std::string::npos;
      if (option == table.end() || (has_value && option->takes == WordTakes::kNothing)) {
        return unknown(word);
      }
      const auto joined = has_value ? std::optional{word.substr(equals + 1)} : std::nullopt;
      if (!take(*option, joined)) return base::invalid_argument(word + ": a value is missing");
      continue;
    }
    for (std::size_t at = 1; at < word.size(); ++at) {
      const auto option = std::ranges::find(table, word[at], &WordOption::letter);
      if (option == table.end()) return unknown(std::string{'-', word[at]});
      const bool takes = option->takes != WordTakes::kNothing;
      const auto joined =
          takes && at + 1 < word.size() ? std::optional{word.substr(at + 1)} : std::nullopt;
      if (!take(*option, joined)) return base::invalid_argument(word + ": a value is missing");
      if (takes) break;
    }
  }
  return read;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> parts = slurm::split(text, ',');
  std::erase(parts, "");
  return parts;
}

}  // namespace cli
