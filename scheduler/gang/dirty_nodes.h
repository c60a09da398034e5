// DirtyNodes: nodes whose timetable may have changed, and when it is to be published at the latest.
//
// Cost: O(log nodes) per mark and per node taken; the earliest instant is at hand.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"

namespace sched::gang {

class DirtyNodes {
 public:
  // The earlier instant counts.
  void mark(NodeIndex node, base::Instant publish_at) {
    const auto [at, is_new] = instant_of_.try_emplace(node, publish_at);
    if (!is_new) {
      if (at->second <= publish_at) return;
      by_instant_.erase({at->second, node});
      at->second = publish_at;
    }
    by_instant_.emplace(publish_at, node);
  }

  std::optional<base::Instant> next() const {
    if (by_instant_.empty()) return std::nullopt;
    return by_instant_.begin()->first;
  }

  // Those that are due by now, ascending; they are not dirty any more.
  std::vector<NodeIndex> take(base::Instant now) {
    std::vector<NodeIndex> due;
    while (!by_instant_.empty() && by_instant_.begin()->first <= now) {
      due.push_back(by_instant_.begin()->second);
      instant_of_.erase(due.back());
      by_instant_.erase(by_instant_.begin());
    }
    std::sort(due.begin(), due.end());
    return due;
  }

  // For saving.
  const std::map<NodeIndex, base::Instant>& all() const { return instant_of_; }

 private:
  std::map<NodeIndex, base::Instant> instant_of_;
  std::set<std::pair<base::Instant, NodeIndex>> by_instant_;
};

}  // namespace sched::gang
