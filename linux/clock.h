// The machine's clocks, as its system calls know them.
#pragma once

#include <time.h>

#include "base/time.h"

namespace os {

// REQUIRES: the machine has this clock. Allocates nothing.
base::Duration read_clock(clockid_t id);

// Converts to what the kernel's calls want. REQUIRES: duration >= 0.
inline timespec to_timespec(base::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const std::chrono::nanoseconds rest = duration - seconds;
  return {.tv_sec = seconds.count(), .tv_nsec = rest.count()};
}

}  // namespace os
