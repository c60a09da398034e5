// OrphanPods: pods that run though their jobs are gone, as a new leader may find them, or have
// ended, as pods may show that no watch has shown in time. Garbage collection deletes the former;
// should it be off, and in the other case, the operator does. It stops pods that others have made
// and does not delete them. Their nodes take nothing new until they are gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "base/timers.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread.
class OrphanPods {
 public:
  void add(const kube::ObjectKey& pod) {
    if (!tries_.at(pod)) tries_.set(pod, base::Instant{});
  }
  void remove(const kube::ObjectKey& pod) { tries_.clear(pod); }

  // Returns as many as there is `room` for (CountedWriter), those that have waited longest first.
  // Each is tried until the watch says that it is gone: the outcome of a try does not matter.
  // `longest`: the grace period that they may have.
  std::vector<DeleteOrphan> due(base::Instant now, std::chrono::seconds longest, std::size_t room);
  // Never in the past: an orphan that finds no room waits for the outcome of another write.
  base::Instant next_due(base::Instant now) const;

 private:
  base::Timers<kube::ObjectKey> tries_;
};

}  // namespace control
