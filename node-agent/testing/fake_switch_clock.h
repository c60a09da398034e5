// A clock that moves only by its setters, or when a thread pauses on it. Both of its readings
// move together; step_wall() moves one alone, as an administrator or NTP does.
#pragma once

#include <utility>

#include "node-agent/switching/switch_clock.h"

namespace agent::testing {

class FakeSwitchClock final : public SwitchClock {
 public:
  explicit FakeSwitchClock(base::Instant wall) : wall_{wall} {}

  base::Duration monotonic() const override { return monotonic_; }
  base::Instant wall() const override {
    const base::Instant now = wall_;
    const base::Duration lost = std::exchange(lost_after_wall_, base::Duration{0});
    wall_ += lost;
    monotonic_ += lost;
    return now;
  }
  void pause(base::Duration duration) override { advance(duration); }
  void pause_until_news(int, base::Duration at_most) override { advance(at_most); }

  void advance(base::Duration duration) {
    wall_ += duration;
    monotonic_ += duration;
  }
  void advance_to(base::Instant wall) { advance(wall - wall_); }
  void step_wall(base::Duration duration) { wall_ += duration; }
  // The next reader of wall() loses the CPU right after it, for that long.
  void lose_cpu_after_wall(base::Duration duration) { lost_after_wall_ = duration; }

 private:
  mutable base::Instant wall_;
  mutable base::Duration monotonic_ = std::chrono::hours{1};
  mutable base::Duration lost_after_wall_{0};
};

}  // namespace agent::testing
