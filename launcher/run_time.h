// The time that a job has run, as its own processes can count it. Pure.
#pragma once

#include <algorithm>
#include <chrono>

namespace launcher {

// No clock of Linux stops while the cgroup freezer holds a process. So the time is counted in small
// steps, and a step that took much longer than it should is one in which the process stood still.
class RunTime {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // How often `at` must be called.
  static constexpr std::chrono::milliseconds kStep{100};

  RunTime(Clock::time_point now, Duration already) : last_{now}, counted_{already} {}

  // Returns the time that has been counted. A machine that is busy may be late by a step.
  Duration at(Clock::time_point now) {
    counted_ += std::min<Duration>(now - last_, 2 * kStep);
    last_ = now;
    return counted_;
  }

 private:
  Clock::time_point last_;
  Duration counted_;
};

}  // namespace launcher
