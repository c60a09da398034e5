#include "node-agent/switching/switch_clock.h"

#include <poll.h>
#include <time.h>

#include "linux/clock.h"

namespace agent {
base::Duration RealSwitchClock::monotonic() const {
  // CLOCK_BOOTTIME goes on while the machine is suspended, unlike CLOCK_MONOTONIC. Otherwise the
  // difference to the wall clock would jump at each resume, and fail-open would not count the
  // suspended time.
  return os::read_clock(CLOCK_BOOTTIME);
}

base::Instant RealSwitchClock::wall() const {
  return base::Instant{os::read_clock(CLOCK_REALTIME)};
}

// A signal may end it early: the caller looks again anyway.
void RealSwitchClock::pause(base::Duration duration) {
  const timespec wait = os::to_timespec(duration);
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

void RealSwitchClock::pause_until_news(int changes_fd, base::Duration at_most) {
  // kernfs reports a changed file by POLLPRI.
  pollfd wait{.fd = changes_fd, .events = POLLPRI, .revents = 0};
  const timespec relative = os::to_timespec(at_most);
  ::ppoll(&wait, 1, &relative, nullptr);
}

}  // namespace agent
