#include "e2e/scenarios/stall_watch.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace scenarios {
namespace {

constexpr int kPriority = 90;  // above the agents' switchers
constexpr std::chrono::milliseconds kEvery{5};
constexpr std::chrono::milliseconds kLate{20};

}  // namespace

StallWatch::StallWatch(const kube::Clock& clock)
    : clock_{clock}, thread_{[this](std::stop_token stop) { watch(stop); }} {}

// Measures how late it wakes. Without the right to a real-time priority it is less sure: it may
// then take a busy machine for one that stood still.
void StallWatch::watch(std::stop_token stop) {
  const sched_param parameters{.sched_priority = kPriority};
  ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &parameters);  // else: as well as it can
  base::Instant last = clock_.wall();
  while (!stop.stop_requested()) {
    ::poll(nullptr, 0, static_cast<int>(kEvery.count()));
    const base::Instant now = clock_.wall();
    if (now - last > kEvery + kLate) {
      const std::lock_guard lock{mutex_};
      // This thread goes before all others; if it could not run for 20 ms more than it asked for,
      // nothing on the machine could be expected to switch in time. A virtual machine that was not
      // scheduled looks like this.
      stalls_.push_back({last, now});
    }
    last = now;
  }
}

bool StallWatch::stalled(base::Instant from, base::Instant to) const {
  const std::lock_guard lock{mutex_};
  return std::any_of(stalls_.begin(), stalls_.end(), [&](const probe::Interval& stall) {
    return stall.from < to && from < stall.to;
  });
}

std::string StallWatch::told() const {
  const std::lock_guard lock{mutex_};
  base::Duration longest{0};
  for (const probe::Interval& stall : stalls_) longest = std::max(longest, stall.to - stall.from);
  if (stalls_.empty()) return "";
  return std::to_string(stalls_.size()) + " times, for up to " +
         std::to_string(longest / std::chrono::milliseconds{1}) + " ms";
}

}  // namespace scenarios
