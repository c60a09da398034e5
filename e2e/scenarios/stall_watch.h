// Knows when this machine stood still. A test that demands switches on time must not fail because a
// virtual machine was paused or all its CPUs were taken away: a thread of the highest real-time
// priority wakes every few milliseconds, and when even that one is late, no program could have been
// in time.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "e2e/probe/analysis.h"
#include "kube/clock.h"

namespace scenarios {

class StallWatch {
 public:
  explicit StallWatch(const kube::Clock& clock);

  // Returns true if the machine stood still for a while in [from, to).
  bool stalled(base::Instant from, base::Instant to) const;
  // Says how often the machine stood still since the beginning: "3 times, for up to 120 ms"; "" if
  // it never did.
  std::string told() const;

 private:
  void watch(std::stop_token stop);

  const kube::Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<probe::Interval> stalls_;  // GUARDED_BY(mutex_)
  std::jthread thread_;
};

}  // namespace scenarios
