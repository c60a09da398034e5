// Exponential back-off with jitter. Not thread-safe. No clock: the caller waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/prng.h"
#include "base/time.h"

namespace kube {

struct BackoffOptions {
  base::Duration first = std::chrono::milliseconds{200};
  base::Duration max = std::chrono::seconds{30};

  friend bool operator==(const BackoffOptions&, const BackoffOptions&) = default;
};

class Backoff {
 public:
  explicit Backoff(BackoffOptions options, std::uint64_t seed) : options_{options}, prng_{seed} {}

  // Returns how long to wait before the next try: `first`, doubled at each call up to `max`, plus 0
  // to 50 % so that many clients of one server do not come back together.
  base::Duration next() {
    const base::Duration bare = next_ == base::Duration{} ? options_.first : next_;
    next_ = std::min(bare * 2, options_.max);
    const auto half = static_cast<std::uint64_t>(bare.count() / 2);
    return bare + base::Duration{static_cast<std::int64_t>(prng_.below(half + 1))};
  }
  // Notes that it worked: begin at `first` again.
  void reset() { next_ = {}; }

 private:
  BackoffOptions options_;
  base::Prng prng_;
  base::Duration next_{};
};

}  // namespace kube
