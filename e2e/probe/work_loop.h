// The probe's rhythm: 0.2 ms of work in every millisecond, or as asked, on instants that are a
// period apart. Pure decisions on the clock; the program does the sleeping and the working.
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
  // `phase` in [0, period): different in each process, so that they do not all wake at once.
  WorkLoop(base::Instant now, base::Duration phase, base::Duration period = kPeriod)
      : period_{period},
        phase_{phase},
        due_{base::boundary_at_or_after(now - phase, period) + phase} {}

  // Returns when to work next: sleep until then.
  base::Instant due() const { return due_; }

  // It is now at or after due(). True: work; false: too late, the work of this instant is lost.
  bool begin(base::Instant now) {
    const base::Instant next = base::boundary_at_or_after(now - phase_, period_) + phase_;
    const bool in_time = now < due_ + period_;
    due_ = next > due_ ? next : due_ + period_;
    return in_time;
  }

 private:
  base::Duration period_;
  base::Duration phase_;
  base::Instant due_;
};

}  // namespace probe
