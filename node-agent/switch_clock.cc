#include "node-agent/switch_clock.h"

#include <poll.h>
#include <time.h>

namespace agent {
namespace {

base::Duration read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return std::chrono::seconds{now.tv_sec} +
         std::chrono::duration_cast<base::Duration>(std::chrono::nanoseconds{now.tv_nsec});
}

}  // namespace

base::Duration RealSwitchClock::monotonic() const {
  return read_clock(CLOCK_BOOTTIME);
}

base::Instant RealSwitchClock::wall() const {
  return base::Instant{read_clock(CLOCK_REALTIME)};
}

void RealSwitchClock::pause(base::Duration duration) {
  const timespec wait = to_timespec(duration);
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

void RealSwitchClock::pause_until_news(int changes_fd, base::Duration at_most) {
  pollfd wait{.fd = changes_fd, .events = POLLPRI, .revents = 0};
  const timespec relative = to_timespec(at_most);
  ::ppoll(&wait, 1, &relative, nullptr);
}

}  // namespace agent
