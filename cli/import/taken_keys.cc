#include "cli/import/taken_keys.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "slurm/conf_actions.h"

namespace cli {
namespace {

// Keys that concern scheduling and need no counterpart, and why.
struct SettledKey {
  std::string_view name;
  std::string_view why;
};
constexpr std::array<SettledKey, 3> kSettled = {
    {{"AccountingStorageEnforce", "accounts, QOS and their limits always hold here"},
     {"MaxJobCount", "a ResourceQuota limits the number of jobs (count/jobs.kubegang.io)"},
     {"MaxArraySize", "numbers of tasks go up to 100000 here"}}};

// Words of SchedulerParameters that need none either.
constexpr std::array<SettledKey, 7> kSettledWords = {
    {{"assoc_limit_continue", "a job over a limit stops no others here"},
     {"default_queue_depth", "after a change 100 jobs are tried, and a pass over all follows"},
     {"defer", "jobs that come together are tried together here"},
     {"enable_hetjob_steps", "there are no heterogeneous jobs"},
     {"max_script_size", "a Job bounds its script"},
     {"max_switch_wait", "jobs cannot ask for switches"},
     {"nohold_on_prolog_fail", "there is no prolog"}}};

// Returns why nothing is lost with the key, or with this word of it; nullptr if something may be.
const SettledKey* find_settled(const std::string& key, const std::string& value) {
  const auto find = [](const auto& all, std::string_view name) -> const SettledKey* {
    const auto is_it = [&](const SettledKey& each) { return slurm::same_word(each.name, name); };
    const auto found = std::find_if(all.begin(), all.end(), is_it);
    return found == all.end() ? nullptr : &*found;
  };
  if (!slurm::same_word(key, "SchedulerParameters")) return find(kSettled, key);
  return find(kSettledWords, std::string_view{value}.substr(0, value.find('=')));
}

// Why a key was left out: it is not about scheduling at all, kubegang has nothing like it, or its
// value is wrong. MessageTimeout is read for the simulation, where it only bounds how long a
// preemptor waits.
void tell(const PlacedKey& placed, const std::string& value, const base::Error& error,
          Remarks& remarks) {
  const std::string& key = placed.key.key;
  if (slurm::is_foreign_key(key) || slurm::same_word(key, "MessageTimeout")) {
    remarks.add(RemarkKind::kForeign, placed.place, key);
    return;
  }
  if (const SettledKey* settled = find_settled(key, value)) {
    remarks.add(RemarkKind::kNote, placed.place,
                key + "=" + value + ": " + std::string{settled->why});
    return;
  }
  if (slurm::is_unknown_key(error) && (value == "none" || value.ends_with("/none"))) {
    remarks.add(RemarkKind::kForeign, placed.place, key);  // a plugin that does nothing
    return;
  }
  if (slurm::is_unknown_key(error)) {
    const std::string shown = slurm::is_secret_key(key) ? key : key + "=" + value;
    remarks.add(RemarkKind::kSetting, placed.place,
                shown + (slurm::same_word(key, "JobSubmitPlugins")
                             ? ": the site's own rules for jobs; here they are admission policies "
                               "of the cluster (MutatingAdmissionPolicy, ValidatingAdmissionPolicy)"
                             : ": kubegang has no such parameter"));
    return;
  }
  // Most messages name the key and the wrong part of its value.
  const bool names_key = slurm::same_word(error.message.substr(0, key.size()), key);
  remarks.add(RemarkKind::kSetting, placed.place,
              names_key ? error.message : key + "=" + value + ": " + error.message);
}

}  // namespace

// Returns `first` and the keys that can be taken beside it. For each key, in the order of the file:
// 1. its whole value, beside all keys that were taken before it
// 2. if that fails and the value is a list, its words one by one, each beside the good ones before
//    it
// 3. everything that could be taken in neither way is reported
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
