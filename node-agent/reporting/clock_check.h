// How well this machine's wall clock is kept: what the kernel's clock discipline says (adjtimex).
#pragma once

#include "base/time.h"

namespace agent {

struct ClockReading {
  bool synchronised = false;
  base::Duration error_max{};  // the kernel's own bound of the offset from true time

  friend bool operator==(const ClockReading&, const ClockReading&) = default;
};

// Needs no capability. An unreadable clock counts as not synchronised.
// SOURCE: adjtimex(2): TIME_ERROR, STA_UNSYNC, maxerror.
ClockReading read_clock_state();

// Returns from which error on the node's clock is not good enough for this slice length:
// min(100 ms, slice / 20). (architecture.md 5)
constexpr base::Duration clock_error_limit(base::Duration slice) {
  constexpr base::Duration kMost = std::chrono::milliseconds{100};
  return slice / 20 < kMost ? slice / 20 : kMost;
}

}  // namespace agent
