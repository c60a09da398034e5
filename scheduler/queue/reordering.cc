#include "scheduler/queue/reordering.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sched {
namespace {

// What the order of two records mostly depends on, small enough to be sorted fast.
struct Key {
  Priority within;
  int tier;
  Priority priority;
  std::uint32_t index;  // of the record
};

// The indexes of the records, in their order.
std::vector<Key> sorted(const std::vector<QueueRecord>& records) {
  std::vector<Key> keys;
  keys.reserve(records.size());
  for (const QueueRecord& record : records) {
    keys.push_back({record.within, record.tier, record.priority,
                    static_cast<std::uint32_t>(keys.size())});
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.within != b.within) return a.within > b.within;
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.priority != b.priority) return a.priority > b.priority;
    return SortedRecords::before(records[a.index], records[b.index]);
  });
  return keys;
}

}  // namespace

void Reordering::add(const std::vector<QueueRecord>& records) {
  if (records.empty()) return;
  const bool in_order = std::is_sorted(records.begin(), records.end(), SortedRecords::before);
  std::vector<Key> keys;
  if (!in_order) keys = sorted(records);
  const QueueRecord& first = in_order ? records.front() : records[keys.front().index];
  const bool begins = runs_.empty();
  const bool follows = !begins && (runs_.back().empty() ||
                                   SortedRecords::before(runs_.back().last(), first));
  moved_ = moved_ || !in_order || (!begins && !follows);
  SortedRecords& run = follows ? runs_.back() : runs_.emplace_back();
  if (in_order) {
    for (const QueueRecord& record : records) run.append(record);
  } else {
    for (const Key& key : keys) run.append(records[key.index]);
  }
}

// Goes on behind the last record that was merged.
std::optional<std::size_t> Reordering::merge(std::size_t count) {
  if (runs_.size() < 2) return count;
  struct Head {
    const SortedRecords* run;
    SortedRecords::Position at;
    const QueueRecord* record;
  };
  std::vector<Head> heads;
  for (const SortedRecords& run : runs_) {
    const auto at = merged_to_ ? run.behind(*merged_to_) : SortedRecords::Position{};
    if (!run.is_end(at)) heads.push_back({&run, at, &run[at]});
  }
  const QueueRecord* last = nullptr;
  for (; count > 0 && !heads.empty(); --count) {
    const auto first =
        std::min_element(heads.begin(), heads.end(), [](const Head& a, const Head& b) {
          return SortedRecords::before(*a.record, *b.record);
        });
    last = first->record;
    merged_.append(*last);
    first->at = first->run->next(first->at);
    if (first->run->is_end(first->at)) {
      heads.erase(first);
    } else {
      first->record = &(*first->run)[first->at];
    }
  }
  if (last != nullptr) merged_to_ = *last;
  return heads.empty() ? std::optional{count} : std::nullopt;
}

bool Reordering::insert(const QueueRecord& record) {
  if (is_merged(record)) return merged_.insert(record);
  if (runs_.empty()) runs_.emplace_back();
  return runs_.back().insert(record);
}

bool Reordering::erase(const QueueRecord& record) {
  if (is_merged(record)) return merged_.erase(record);
  return std::any_of(runs_.begin(), runs_.end(),
                     [&](SortedRecords& run) { return run.erase(record); });
}

SortedRecords Reordering::take() && {
  if (runs_.size() == 1) return std::move(runs_.front());
  return std::move(merged_);
}

}  // namespace sched
