// The clock that the switcher reads and waits on.
#pragma once

#include <time.h>

#include "base/time.h"
#include "kube/clock.h"

namespace agent {

// As the kernel's calls want it. REQUIRES: duration >= 0.
inline timespec to_timespec(base::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const std::chrono::nanoseconds rest = duration - seconds;
  return {.tv_sec = seconds.count(), .tv_nsec = rest.count()};
}

class SwitchClock : public kube::Clock {
 public:
  // Gives the CPU away for about this long: the tasks that have to stop may need this very CPU.
  virtual void pause(base::Duration duration) = 0;
  // The same, but no longer than until the descriptor has news (Freezer::changes_fd).
  virtual void pause_until_news(int changes_fd, base::Duration at_most) = 0;
};

// The machine's. monotonic() is CLOCK_BOOTTIME, wall() CLOCK_REALTIME. Allocates nothing.
class RealSwitchClock final : public SwitchClock {
 public:
  base::Duration monotonic() const override;
  base::Instant wall() const override;
  void pause(base::Duration duration) override;
  void pause_until_news(int changes_fd, base::Duration at_most) override;
};

}  // namespace agent
