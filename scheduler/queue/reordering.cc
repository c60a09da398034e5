#include "scheduler/queue/reordering.h"

#include <algorithm>
#include <utility>

namespace sched {

void Reordering::add(SortedRecords records, bool moved) {
  if (records.empty()) return;
  const bool begins = runs_.empty();
  const bool follows =
      !begins && (runs_.back().empty() ||
                  SortedRecords::before(runs_.back().last(), records.first()));
  moved_ = moved_ || moved || (!begins && !follows);
  if (follows) {
    runs_.back().append(std::move(records));
  } else {
    runs_.push_back(std::move(records));
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
