#include "kube/clock.h"

#include <time.h>

#include "base/check.h"

namespace kube {
namespace {

base::Duration read_clock(clockid_t id) {
  timespec now{};
  CHECK(clock_gettime(id, &now) == 0);
  return std::chrono::duration_cast<base::Duration>(std::chrono::seconds{now.tv_sec} +
                                                    std::chrono::nanoseconds{now.tv_nsec});
}

}  // namespace

base::Duration SystemClock::monotonic() const {
  return read_clock(CLOCK_BOOTTIME);
}

base::Instant SystemClock::wall() const {
  return base::Instant{read_clock(CLOCK_REALTIME)};
}

}  // namespace kube
