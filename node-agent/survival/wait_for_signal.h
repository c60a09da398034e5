// Waits for a signal that is blocked, as PID 1 of a container does.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

#include "base/time.h"
#include "linux/clock.h"

namespace agent {

// Returns the signal; nullopt if none of them came within the time. REQUIRES: they are blocked.
inline std::optional<int> wait_for_signal(std::initializer_list<int> signals,
                                          base::Duration timeout) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  const timespec relative = os::to_timespec(timeout);
  const int signal = ::sigtimedwait(&set, nullptr, &relative);
  if (signal < 0) return std::nullopt;
  return signal;
}

}  // namespace agent
