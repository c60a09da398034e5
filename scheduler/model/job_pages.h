// JobPages: finds what is kept of a job by its id. Numbers of jobs are dense, and so are those of
// the tasks of an array, so they are looked up in pages: a page by its number, the job at its place
// in it. A tree of all ids would be a walk from one cache miss to the next.
//
// Ids only rise, so pages of old jobs empty and go. Cost: O(log pages), and nothing but the place
// if the id is near the one before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>

#include "scheduler/model/ids.h"

namespace sched {

template <typename Value>
class JobPages {
 public:
  // Null if there is nothing of this job.
  Value* find(JobId id) const {
    const Page* const page = find_page(page_of(id));
    return page == nullptr ? nullptr : page->values[place_of(id)];
  }
  // `value` must stay where it is until it is erased. REQUIRES: there is nothing of this job.
  void insert(JobId id, Value& value) {
    std::unique_ptr<Page>& page = pages_[page_of(id)];
    if (!page) page = std::make_unique<Page>();
    page->values[place_of(id)] = &value;
    ++page->count;
  }
  // REQUIRES: find(id) is not null.
  void erase(JobId id) {
    const auto page = pages_.find(page_of(id));
    page->second->values[place_of(id)] = nullptr;
    if (--page->second->count > 0) return;
    if (last_number_ == page->first) last_number_ = kNoPage;
    pages_.erase(page);
  }

 private:
  static constexpr std::int64_t kPageJobs = 1024;
  static constexpr std::int64_t kNoPage = std::numeric_limits<std::int64_t>::min();
  struct Page {
    std::array<Value*, kPageJobs> values{};
    int count = 0;
  };
  // Tasks have pages of their own: those of an array lie together.
  static std::int64_t page_of(JobId id) {
    constexpr std::int64_t kTasks = std::int64_t{1} << 62;
    return id.is_task() ? kTasks | (id.packed() >> 10) : id.number() >> 10;
  }
  static std::size_t place_of(JobId id) {
    return static_cast<std::size_t>((id.is_task() ? id.packed() : id.number()) & (kPageJobs - 1));
  }

  // Look-ups mostly follow each other among jobs of neighboring numbers, so the last page is tried
  // first.
  const Page* find_page(std::int64_t number) const {
    if (number == last_number_) return last_page_;
    const auto page = pages_.find(number);
    if (page == pages_.end()) return nullptr;
    last_number_ = number;
    last_page_ = page->second.get();
    return last_page_;
  }

  std::map<std::int64_t, std::unique_ptr<Page>> pages_;
  mutable std::int64_t last_number_ = kNoPage;
  mutable const Page* last_page_ = nullptr;
};

}  // namespace sched
