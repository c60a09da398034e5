// A clock that stands still until it is moved. For tests and simulations. Thread-safe.
#pragma once

#include <atomic>

#include "kube/clock.h"

namespace kube {

class ManualClock final : public Clock {
 public:
  // 2026-01-01T00:00:00Z, so that formatted times look like times.
  static constexpr base::Instant kStart = base::instant_from_micros(1'767'225'600'000'000);

  explicit ManualClock(base::Instant start = kStart)
      : wall_micros_{base::micros_since_epoch(start)} {}

  base::Duration monotonic() const override { return base::Duration{monotonic_micros_.load()}; }
  base::Instant wall() const override { return base::instant_from_micros(wall_micros_.load()); }

  // Moves both clocks on. REQUIRES: by >= 0.
  void advance(base::Duration by) {
    monotonic_micros_ += by.count();
    wall_micros_ += by.count();
  }
  // Sets the wall clock as a person would; monotonic() does not notice.
  void step_wall(base::Duration by) { wall_micros_ += by.count(); }

 private:
  std::atomic<std::int64_t> monotonic_micros_{0};
  std::atomic<std::int64_t> wall_micros_;
};

}  // namespace kube
