#include "linux/clock.h"

#include "base/check.h"

namespace os {

// Cut down to microseconds, the resolution of base::Duration.
base::Duration read_clock(clockid_t id) {
  timespec now{};
  CHECK(::clock_gettime(id, &now) == 0);
  return std::chrono::duration_cast<base::Duration>(std::chrono::seconds{now.tv_sec} +
                                                    std::chrono::nanoseconds{now.tv_nsec});
}

}  // namespace os
