// Time in the simulation: one true time, and each machine's own clocks, which may be wrong.
#pragma once

#include <algorithm>

#include "kube/testing/manual_clock.h"
#include "node-agent/switching/switch_clock.h"

namespace simulation {

// True time since the beginning of a round.
using Time = base::Duration;
inline constexpr Time kNoTime = Time::max();

// The clocks of one machine. The monotonic one follows the true time; work that takes time on this
// machine only (a switch) lets it run ahead until the true time has caught up. The wall clock can
// be set and can drift.
class HostClock final : public agent::SwitchClock {
 public:
  explicit HostClock(const Time& now) : now_{now} {}

  base::Duration monotonic() const override { return kUp + local(); }
  base::Instant wall() const override { return kube::ManualClock::kStart + local() + offset(); }
  void pause(base::Duration duration) override { spend(duration); }
  void pause_until_news(int, base::Duration at_most) override { spend(at_most); }

  void spend(base::Duration duration) { busy_until_ = local() + duration; }
  void step(base::Duration by) { offset_ += by; }
  void drift(std::int64_t parts_per_million) {
    offset_ = offset();
    drifts_since_ = local();
    parts_per_million_ = parts_per_million;
  }
  // Returns by how much the wall clock is ahead of the true time.
  base::Duration offset() const {
    return offset_ + (local() - drifts_since_) * parts_per_million_ / 1'000'000;
  }

  // Returns when these clocks show that, never in the past.
  Time when_monotonic(base::Duration shows) const { return std::max(now_, shows - kUp); }
  Time when_wall(base::Instant shows) const {
    return shows == base::kNever ? kNoTime : std::max(now_, local() + (shows - wall()));
  }

 private:
  static constexpr base::Duration kUp = std::chrono::hours{1};  // before the round began

  Time local() const { return std::max(now_, busy_until_); }

  const Time& now_;
  Time busy_until_{0};
  base::Duration offset_{0};
  Time drifts_since_{0};
  std::int64_t parts_per_million_ = 0;
};

}  // namespace simulation
