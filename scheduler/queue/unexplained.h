// Unexplained: the queued jobs whose reason is None or Resources (others may be among them). A pass
// gives those that it did not reach the reason Priority without walking the whole queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "scheduler/model/ids.h"

namespace sched {

class Unexplained {
 public:
  // `jobs_count`: of the job table; the list is compacted when it is much longer than that.
  void note(JobId id, std::size_t jobs_count) {
    if (!ids_.empty() && ids_.back() == id) return;
    ids_.push_back(id);
    if (ids_.size() > 2 * jobs_count + 1024) compact();
  }
  // Calls is_explained(id) for each job, in ascending order, and forgets those for which it
  // returns true.
  template <typename IsExplained>
  void forget_if(const IsExplained& is_explained) {
    compact();
    std::erase_if(ids_, is_explained);
  }

 private:
  void compact() {
    if (!std::is_sorted(ids_.begin(), ids_.end())) std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  }

  std::vector<JobId> ids_;  // some of them more than once
};

}  // namespace sched
