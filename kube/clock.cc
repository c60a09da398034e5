#include "kube/clock.h"

#include <time.h>

#include "linux/clock.h"

namespace kube {

// Not CLOCK_MONOTONIC, which stands still while a machine is suspended: a leader that wakes up must
// see at once that its lease has expired.
base::Duration SystemClock::monotonic() const {
  return os::read_clock(CLOCK_BOOTTIME);
}

base::Instant SystemClock::wall() const {
  return base::Instant{os::read_clock(CLOCK_REALTIME)};
}

}  // namespace kube
