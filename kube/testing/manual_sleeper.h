// Sleeping moves the manual clock and takes no time. Keeps what was slept, in order.
#pragma once

#include <mutex>
#include <vector>

#include "kube/sleeper.h"
#include "kube/testing/manual_clock.h"

namespace kube {

class ManualSleeper final : public Sleeper {
 public:
  explicit ManualSleeper(ManualClock& clock) : clock_{clock} {}

  base::Status sleep(base::Duration duration, std::stop_token stop) override {
    if (stop.stop_requested()) return base::Error{base::Code::kCancelled, "stopped"};
    clock_.advance(duration);
    const std::lock_guard lock{mu_};
    slept_.push_back(duration);
    return {};
  }

  std::vector<base::Duration> slept() const {
    const std::lock_guard lock{mu_};
    return slept_;
  }

 private:
  ManualClock& clock_;
  mutable std::mutex mu_;
  std::vector<base::Duration> slept_;
};

}  // namespace kube
