#include "scheduler/queue/sorted_records.h"

#include <algorithm>

namespace sched {
namespace {

// Four kilobytes: copied in the time of a cache miss or two.
constexpr std::size_t kBlockRecords = 56;

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

// Whole blocks, and a part of the one behind them.
std::vector<QueueRecord> SortedRecords::take_first(std::size_t count) {
  std::vector<QueueRecord> taken;
  auto block = blocks_.begin();
  for (std::size_t size = 0; block != blocks_.end() && size + block->size() <= count; ++block) {
    size += block->size();
  }
  taken.reserve(static_cast<std::size_t>(block - blocks_.begin() + 1) * (kBlockRecords + 1));
  for (auto whole = blocks_.begin(); whole != block; ++whole) {
    taken.insert(taken.end(), whole->begin(), whole->end());
  }
  if (block != blocks_.end()) {
    const auto part = block->begin() + static_cast<std::ptrdiff_t>(count - taken.size());
    taken.insert(taken.end(), block->begin(), part);
    block->erase(block->begin(), part);
  }
  blocks_.erase(blocks_.begin(), block);
  return taken;
}

}  // namespace sched
