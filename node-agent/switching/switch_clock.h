// The clock that the switcher reads and waits on.
#pragma once

#include "base/time.h"
#include "kube/clock.h"

namespace agent {

class SwitchClock : public kube::Clock {
 public:
  // Gives the CPU away for about this long: the tasks that must stop may need this very CPU.
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
