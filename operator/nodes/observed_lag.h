// How long nodes have not obeyed what was published for them: for the metric and its alert, nothing
// is decided by it. A node that obeys a newer timetable than the published one is behind, too:
// after etcd was restored from a backup, agents may hold what the API server has lost.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace control {

struct TimetableVersion {
  std::int64_t term = 0;
  std::int64_t revision = 0;
  friend auto operator<=>(const TimetableVersion&, const TimetableVersion&) = default;
};

// Belongs to one thread. Remembers only nodes that are behind.
class ObservedLag {
 public:
  // Notes a NodeTimetable as seen: the version that is published, the one that its agent obeys.
  void see(const std::string& node, TimetableVersion published,
           std::optional<TimetableVersion> observed, base::Instant now);
  void forget(const std::string& node) { behind_.erase(node); }
  std::int64_t behind_count() const { return static_cast<std::int64_t>(behind_.size()); }

  // Returns for how long the longest waiting version of a node that `counts` has waited to be
  // obeyed; zero if none does. A node that follows, however late, starts over with each version
  // that it reaches. Cost: all nodes that are behind.
  base::Duration oldest(base::Instant now,
                        const std::function<bool(const std::string&)>& counts) const;

 private:
  struct Waiting {
    TimetableVersion version;
    base::Instant since{};
  };
  std::map<std::string, Waiting> behind_;
};

}  // namespace control
