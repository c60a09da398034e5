#include "scheduler/queue/sorted_records.h"

#include <algorithm>
#include <cstdint>

#include "scheduler/jobs/job_table.h"

namespace sched {
namespace {

// Four kilobytes: copied in the time of a cache miss or two.
constexpr std::size_t kBlockRecords = 56;
// So many records ahead the memory of a job is asked for, so that it has arrived in time.
constexpr std::size_t kAhead = 16;

// Fetches the fields of the job that working out a priority reads and writes.
void fetch(const Job& job) {
  __builtin_prefetch(&job.priority, 1);
}

}  // namespace

// The block in which the record is, or into which it belongs. REQUIRES: there is one.
std::size_t SortedRecords::block_of(const QueueRecord& record) const {
  const auto found = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return before(block.back(), record);
  });
  if (found == blocks_.end()) return blocks_.size() - 1;
  return static_cast<std::size_t>(found - blocks_.begin());
}

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

SortedRecords::Position SortedRecords::behind(const QueueRecord& key) const {
  const auto found = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return !before(key, block.back());
  });
  if (found == blocks_.end()) return {blocks_.size(), 0};
  const auto place = std::upper_bound(found->begin(), found->end(), key, before);
  return {static_cast<std::size_t>(found - blocks_.begin()),
          static_cast<std::size_t>(place - found->begin())};
}

// The jobs of the records are all over the memory, so those of the records ahead are asked for
// early.
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
// 3. Put them back into the blocks, which keep their sizes.
void SortedRecords::sort_all() {
  std::vector<QueueRecord> taken;  // 1
  std::vector<QueueRecord> aside;
  taken.reserve(blocks_.size() * (kBlockRecords + 1));
  for (const Block& block : blocks_) {
    for (const QueueRecord& record : block) {
      if (!taken.empty() && before(record, taken.back())) {
        if (taken.size() > 1 && before(record, *(taken.end() - 2))) {
          aside.push_back(record);
          continue;
        }
        aside.push_back(taken.back());
        taken.pop_back();
      }
      taken.push_back(record);
    }
  }
  std::sort(aside.begin(), aside.end(), before);  // 2
  auto a = taken.cbegin();
  auto b = aside.cbegin();
  for (Block& block : blocks_) {  // 3
    for (QueueRecord& record : block) {
      const bool from_aside = a == taken.cend() || (b != aside.cend() && before(*b, *a));
      record = from_aside ? *b++ : *a++;
    }
  }
}

}  // namespace sched
