#include "cli/import/taken_keys.h"

#include <string>
#include <string_view>
#include <utility>

#include "slurm/conf_actions.h"

namespace cli {
namespace {

// Why a key was left out: it is not about scheduling at all, kubegang has nothing like it, or its
// value is wrong.
void tell(const PlacedKey& placed, const std::string& value, const base::Error& error,
          Remarks& remarks) {
  const std::string why = slurm::is_foreign_key(placed.key.key) ? "is not about scheduling"
                          : slurm::is_unknown_key(error)        ? "kubegang has no such parameter"
                                                                : error.message;
  remarks.add(placed.place, placed.key.key + "=" + value + ": " + why);
}

// Returns the text with '?' for control characters: files may have any, and remarks go to
// terminals.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20U || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

std::vector<std::string> Remarks::texts(const std::vector<std::string>& file_names) const {
  std::vector<std::string> texts;
  for (const auto& [file, line, text] : remarks_) {
    texts.push_back(printable(file_names.at(file) + ":" + std::to_string(line) + ": " + text));
  }
  return texts;
}

// Returns `first` and the keys that can be taken beside it. For each key, in the order of the file:
// 1. its whole value, beside all keys that were taken before it
// 2. if that fails and the value is a list, its words one by one, each beside the good ones before
//    it
// 3. everything that could be taken in neither way is told
std::vector<slurm::KeyValue> take_keys(std::vector<slurm::KeyValue> first,
                                       std::span<const PlacedKey> keys, const CanTake& can_take,
                                       Remarks& remarks) {
  std::vector<slurm::KeyValue> taken = std::move(first);
  const auto try_value = [&](const std::string& key, const std::string& value) {
    taken.push_back({key, value});
    base::Status status = can_take(taken);
    taken.pop_back();
    return status;
  };
  for (const PlacedKey& placed : keys) {
    const auto& [key, value] = placed.key;
    // Each key is tried together with all that were taken before, because the meaning of a key may
    // depend on an earlier one.
    const base::Status whole = try_value(key, value);
    if (whole) {
      taken.push_back(placed.key);
      continue;
    }
    // A list of which one word is not supported keeps the others: SchedulerParameters with twenty
    // words must not be lost for one.
    const std::vector<std::string> words = slurm::split(value, ',');
    if (words.size() < 2 || slurm::is_unknown_key(whole.error())) {
      tell(placed, value, whole.error(), remarks);
      continue;
    }
    std::string good;
    for (const std::string& word : words) {
      std::string more = good.empty() ? word : good + "," + word;
      const base::Status with_word = try_value(key, more);
      if (with_word) {
        good = std::move(more);
      } else {
        tell(placed, word, with_word.error(), remarks);
      }
    }
    if (!good.empty()) taken.push_back({key, good});
  }
  return taken;
}

}  // namespace cli
