// The probe's rhythm: 0.2 ms of work in every millisecond, on instants that are a millisecond
// apart. Pure decisions on the clock; the program does the sleeping and the working.
//
// Progress is counted so that it can be compared: an instant that passed while the process could
// not run is lost and not made up for, so two processes that share a CPU fairly and without loss
// count together exactly what one alone counts.
#pragma once

#include "base/time.h"

namespace probe {

inline constexpr base::Duration kPeriod = std::chrono::milliseconds{1};
inline constexpr base::Duration kWork = std::chrono::microseconds{200};

class WorkLoop {
 public:
  // `phase` in [0, kPeriod): different in each process, so that they do not all wake at once.
  WorkLoop(base::Instant now, base::Duration phase)
      : phase_{phase}, due_{base::boundary_at_or_after(now - phase, kPeriod) + phase} {}

  // When to work next: sleep until then.
  base::Instant due() const { return due_; }

  // It is now at or after due(). True: work; false: too late, the work of this instant is lost.
  bool begin(base::Instant now) {
    const base::Instant next = base::boundary_at_or_after(now - phase_, kPeriod) + phase_;
    const bool in_time = now < due_ + kPeriod;
    due_ = next > due_ ? next : due_ + kPeriod;
    return in_time;
  }

 private:
  base::Duration phase_;
  base::Instant due_;
};

}  // namespace probe
