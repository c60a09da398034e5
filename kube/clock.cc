#include "kube/clock.h"

#include <time.h>

#include "linux/clock.h"

namespace kube {

base::Duration SystemClock::monotonic() const {
  return os::read_clock(CLOCK_BOOTTIME);
}

base::Instant SystemClock::wall() const {
  return base::Instant{os::read_clock(CLOCK_REALTIME)};
}

}  // namespace kube
