#include "scheduler/queue/reordering.h"

#include <algorithm>
#include <utility>

namespace sched {

// Records come in pieces of the old order, each with its new priorities and in order by itself.
// When all jobs get older alike, each piece begins behind the end of the one before, and all of
// them are one run which need not be merged: priorities 100, 90 | 80, 70 become 101, 91 | 81, 71.
// When 80 becomes 95 instead, its piece 95, 71 begins a second run, and only the merge finds that
// 95 goes between 101 and 91.
//
// Pieces are appended to the last run alone. To look for an older run that a piece would follow
// might save a run, but not the merge.
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

// A merge of k runs, in steps. A record that is merged stays in its run as a copy, which is not
// looked at again.
//
// Invariant between the steps: the records up to `merged_to_` are those of merged_, and the records
// behind it those of the runs. Both change meanwhile, as jobs come and go, so no position is kept:
// each step looks for its place in each run by that record, which may be gone. Among the few runs,
// a look at all of them finds the one with the first head.
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

// The side of merged_to_ on which the record belongs has it, and no other copy of it counts. Any
// run will do for a record behind it, since each run is in order by itself.
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

// A single run was never merged: it is the order already.
SortedRecords Reordering::take() && {
  if (runs_.size() == 1) return std::move(runs_.front());
  return std::move(merged_);
}

}  // namespace sched
