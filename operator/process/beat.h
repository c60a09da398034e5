// Beat: shows if the main thread still goes round. The Lease and /healthz look at it, because both
// live on other threads: a leader whose loop is dead would keep them forever.
#pragma once

#include <atomic>

#include "base/result.h"
#include "kube/clock.h"

namespace control {

// beat() belongs to the main thread; the others may be called from any.
class Beat {
 public:
  explicit Beat(const kube::Clock& clock) : clock_{clock} { beat(); }

  // Notes that the main thread begins or ends a step, or looks around while it waits.
  void beat() { at_micros_ = clock_.monotonic().count(); }
  bool is_fresh(base::Duration age_max) const {
    return clock_.monotonic() - base::Duration{at_micros_.load()} <= age_max;
  }
  // Returns what /healthz answers.
  base::Status alive(base::Duration age_max) const {
    if (is_fresh(age_max)) return {};
    return base::Error{base::Code::kUnavailable, "the main thread stands still"};
  }

 private:
  const kube::Clock& clock_;
  std::atomic<std::int64_t> at_micros_{0};
};

}  // namespace control
