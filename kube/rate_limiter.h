// A token bucket: at most `burst` requests at once and `per_second` in the long run. Thread-safe;
// does not wait itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "kube/clock.h"

namespace kube {

struct RateLimit {
  std::int32_t per_second = 50;  // > 0
  std::int32_t burst = 100;      // > 0
};

class RateLimiter {
 public:
  RateLimiter(const Clock& clock, RateLimit limit)
      : clock_{clock},
        interval_{std::chrono::microseconds{1'000'000} / limit.per_second},
        burst_{interval_ * limit.burst},
        next_{clock.monotonic() - burst_} {}

  // Takes a token and returns how long to wait before using it (0: none to wait).
  base::Duration reserve() {
    const base::Duration now = clock_.monotonic();
    const std::lock_guard lock{mu_};
    next_ = std::max(next_, now - burst_) + interval_;
    return std::max(next_ - now, base::Duration{});
  }

 private:
  const Clock& clock_;
  const base::Duration interval_;
  const base::Duration burst_;
  std::mutex mu_;
  base::Duration next_;  // when the bucket's last token becomes usable
};

}  // namespace kube
