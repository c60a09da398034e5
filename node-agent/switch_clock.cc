#include "node-agent/switch_clock.h"

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

base::Duration RealSwitchClock::monotonic() const { return read_clock(CLOCK_BOOTTIME); }

base::Instant RealSwitchClock::wall() const { return base::Instant{read_clock(CLOCK_REALTIME)}; }

void RealSwitchClock::pause(base::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const std::chrono::nanoseconds rest = duration - seconds;
  const timespec wait{.tv_sec = seconds.count(), .tv_nsec = rest.count()};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

}  // namespace agent
