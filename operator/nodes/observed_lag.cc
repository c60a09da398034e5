#include "operator/nodes/observed_lag.h"

#include <algorithm>

namespace control {

void ObservedLag::see(const std::string& node, TimetableVersion published,
                      std::optional<TimetableVersion> observed, base::Instant now) {
  if (observed == published) {
    behind_.erase(node);
    return;
  }
  const auto [found, is_new] = behind_.try_emplace(node, Waiting{published, now});
  if (is_new) return;
  Waiting& waiting = found->second;
  // Newer versions are published while a node is behind. It waits for the oldest one that it has
  // not obeyed: when that is reached and a newer one is not, the wait begins again, because the
  // instant at which the newer one was published was not noted. So the lag errs on the small side.
  const bool reached = observed && waiting.version <= *observed && *observed < published;
  // A timetable that was deleted and created again begins with revision 1, which no agent can be
  // behind of for a version that is gone.
  const bool recreated = published < waiting.version;
  if (reached || recreated) waiting = {published, now};
}

base::Duration ObservedLag::oldest(base::Instant now,
                                   const std::function<bool(const std::string&)>& counts) const {
  base::Duration longest{0};
  for (const auto& [node, waiting] : behind_) {
    if (counts(node)) longest = std::max(longest, now - waiting.since);
  }
  return longest;
}

}  // namespace control
