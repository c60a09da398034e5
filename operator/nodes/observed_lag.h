// How long nodes have not obeyed what was published for them: for the metric and its alert, nothing
// is decided by it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace control {

// Belongs to one thread. Remembers only nodes that are behind.
class ObservedLag {
 public:
  // Of a NodeTimetable as seen: the revision that is published, the one that its agent obeys.
  void see(const std::string& node, std::int64_t published, std::optional<std::int64_t> observed,
           base::Instant now);
  void forget(const std::string& node) { behind_.erase(node); }

  // Since when the longest waiting revision of a node that `counts` waits to be obeyed; zero when
  // none does. A node that follows, however late, starts anew with each revision that it reaches.
  base::Duration oldest(base::Instant now,
                        const std::function<bool(const std::string&)>& counts) const;

 private:
  struct Waiting {
    std::int64_t revision = 0;
    base::Instant since{};
  };
  std::map<std::string, Waiting> behind_;
};

}  // namespace control
