// The clock that operator, agent and the client library are given. Intervals are measured on
// monotonic(); wall() is only for what the API shows and for the timetables' absolute instants.
#pragma once

#include "base/time.h"

namespace kube {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back, does not stop while the machine sleeps (CLOCK_BOOTTIME).
  virtual base::Duration monotonic() const = 0;
  // CLOCK_REALTIME: may step.
  virtual base::Instant wall() const = 0;
};

// The machine's own clocks.
class SystemClock final : public Clock {
 public:
  base::Duration monotonic() const override;
  base::Instant wall() const override;
};

// Stands still until it is moved. For tests and simulations.
class ManualClock;  // kube/testing/manual_clock.h

}  // namespace kube
