#include "scheduler/queue/sorted_records.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/jobs/job_table.h"

namespace sched {
namespace {

// Some three kilobytes: copied in the time of a cache miss or two.
constexpr std::size_t kBlockRecords = 56;
// The distance at which the memory of a job is asked for, so that it has arrived in time.
constexpr std::size_t kAhead = 16;

// Fetches the fields of the job that working out a priority reads and writes.
void fetch(const Job& job) {
  __builtin_prefetch(&job.priority, 1);
  __builtin_prefetch(&job.queued, 1);
  __builtin_prefetch(&job.factors.association, 1);
}

// A record, and what its place mostly depends on: small, so that it is sorted fast.
struct Key {
  Priority within;
  int tier;
  Priority priority;
  const QueueRecord* record;
};

bool before_key(const Key& a, const Key& b) {
  if (a.within != b.within) return a.within > b.within;
  if (a.tier != b.tier) return a.tier > b.tier;
  if (a.priority != b.priority) return a.priority > b.priority;
  return SortedRecords::before(*a.record, *b.record);
}

}  // namespace

// Returns the block in which the record is, or into which it belongs. REQUIRES: there is one.
std::size_t SortedRecords::block_of(const QueueRecord& record) const {
  const auto found = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return before(block.back(), record);
  });
  if (found == blocks_.end()) return blocks_.size() - 1;
  return static_cast<std::size_t>(found - blocks_.begin());
}

// A block that gets too large is cut in the middle, so both halves have room for those to come.
// Nothing merges blocks that have become small: a block goes away with its last record, and
// change_all() fills all of them again when it sorts.
bool SortedRecords::insert(const QueueRecord& record) {
  if (blocks_.empty() || before(blocks_.back().back(), record)) {
    append(record);
    return true;
  }
  const std::size_t index = block_of(record);
  Block& block = blocks_[index];
  const auto place = std::lower_bound(block.begin(), block.end(), record, before);
  if (place != block.end() && !before(record, *place)) return false;
  block.insert(place, record);
  if (block.size() <= kBlockRecords) return true;
  Block rest;
  rest.reserve(kBlockRecords + 1);
  const auto middle = block.begin() + kBlockRecords / 2;
  rest.assign(middle, block.end());
  block.erase(middle, block.end());
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(rest));
  return true;
}

// The usual place of a new job. Blocks that grow at the end alone get full.
void SortedRecords::append(const QueueRecord& record) {
  if (blocks_.empty() || blocks_.back().size() >= kBlockRecords) {
    blocks_.emplace_back().reserve(kBlockRecords + 1);
  }
  blocks_.back().push_back(record);
}

bool SortedRecords::erase(const QueueRecord& record) {
  if (blocks_.empty()) return false;
  const std::size_t index = block_of(record);
  Block& block = blocks_[index];
  const auto place = std::lower_bound(block.begin(), block.end(), record, before);
  if (place == block.end() || before(record, *place)) return false;
  block.erase(place);
  if (block.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

// Finds the block first, by its last record, then the record in it. The key need not be there: any
// key with the fields that the order looks at is a place between two records.
SortedRecords::Position SortedRecords::behind(const QueueRecord& key) const {
  const auto found = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return !before(key, block.back());
  });
  if (found == blocks_.end()) return {blocks_.size(), 0};
  const auto place = std::upper_bound(found->begin(), found->end(), key, before);
  return {static_cast<std::size_t>(found - blocks_.begin()),
          static_cast<std::size_t>(place - found->begin())};
}

// Blocks are handed over as they are, even if not full.
void SortedRecords::append(SortedRecords records) {
  std::move(records.blocks_.begin(), records.blocks_.end(), std::back_inserter(blocks_));
}

// Whole blocks, and a part of the one behind them.
SortedRecords SortedRecords::take_first(std::size_t count) {
  SortedRecords taken;
  auto block = blocks_.begin();
  for (; block != blocks_.end() && block->size() <= count; ++block) {
    count -= block->size();
    taken.blocks_.push_back(std::move(*block));
  }
  if (block != blocks_.end()) {
    const auto part = block->begin() + static_cast<std::ptrdiff_t>(count);
    for (auto at = block->begin(); at != part; ++at) taken.append(*at);
    block->erase(block->begin(), part);
  }
  blocks_.erase(blocks_.begin(), block);
  return taken;
}

// The jobs of the records are all over the memory, so those of the records ahead are asked for
// early. Each record is compared with the one before it on the way, because mostly the order is as
// before and nothing must be sorted.
bool SortedRecords::change_all(const std::function<void(QueueRecord&)>& change) {
  const QueueRecord* last = nullptr;
  bool in_order = true;
  for (Block& block : blocks_) {
    for (std::size_t i = 0; i < std::min(kAhead, block.size()); ++i) fetch(*block[i].record);
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (i + kAhead < block.size()) fetch(*block[i + kAhead].record);
      change(block[i]);
      in_order = in_order && (last == nullptr || before(*last, block[i]));
      last = &block[i];
    }
  }
  if (!in_order) sort_all();
  return !in_order;
}

// Mostly few records have left their order, and then the others need not be sorted.
//
// 1. Take records in turn. One that comes before the last one taken is set aside; or that one is,
//    if the record follows the one taken before it.
// 2. Sort what was set aside, and merge both.
// 3. Copy the records, in this order, into new blocks.
//
// A job that fell and a job that rose each cost one record set aside. In 9 7 8 6 the 7 fell: 8
// comes before it and follows 9, so 7 is set aside. In 9 8 7 10 6 the 10 rose: it comes before 7
// and before 8, so 10 is set aside. A std::sort over all would take O(records × log), this
// O(records + aside × log).
void SortedRecords::sort_all() {
  std::vector<Key> taken;  // 1
  std::vector<Key> aside;
  taken.reserve(blocks_.size() * kBlockRecords);
  for (const Block& block : blocks_) {
    for (const QueueRecord& record : block) {
      const Key key{record.within, record.tier, record.priority, &record};
      if (!taken.empty() && before_key(key, taken.back())) {
        if (taken.size() > 1 && before_key(key, *(taken.end() - 2))) {
          aside.push_back(key);
          continue;
        }
        aside.push_back(taken.back());
        taken.pop_back();
      }
      taken.push_back(key);
    }
  }
  std::sort(aside.begin(), aside.end(), before_key);  // 2
  SortedRecords sorted;
  auto a = taken.cbegin();
  auto b = aside.cbegin();
  while (a != taken.cend() || b != aside.cend()) {
    const bool from_aside = a == taken.cend() || (b != aside.cend() && before_key(*b, *a));
    sorted.append(*(from_aside ? b++ : a++)->record);  // 3
  }
  blocks_ = std::move(sorted.blocks_);
}

}  // namespace sched
