// When the worker counts as hung: its loops no longer beat. Pure; stepped with the time and the
// beats. The supervisor kills such a worker; the guard only thaws, so it need not be patient with a
// worker that starts.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace agent {

inline constexpr base::Duration kHangAfter = std::chrono::seconds{5};
// Until both loops of a new worker have beaten: on a busy disk it takes seconds to load the
// program, and before that another agent may need to let the run directory go.
inline constexpr base::Duration kStartWithin = std::chrono::seconds{30};
// A longer pause between two looks is the supervisor's own (the machine slept, the container was
// stopped) and says nothing about the worker.
inline constexpr base::Duration kLookGapMax = std::chrono::seconds{1};

class WorkerWatch {
 public:
  explicit WorkerWatch(base::Duration start_within = kStartWithin)
      : start_within_{start_within}, limit_{start_within} {}

  // A new worker was started; its beats count from 0.
  void started(base::Duration now) {
    seen_at_ = now;
    quiet_ = base::Duration{0};
    limit_ = start_within_;
    beats_.reset();
  }

  // Returns true if one of the two loops has not beaten for kHangAfter, or has not begun to beat in
  // the time that a start may take.
  bool hangs(std::uint64_t main_beat, std::uint64_t switcher_beat, base::Duration now) {
    const base::Duration gap = now - seen_at_;
    seen_at_ = now;
    if (main_beat > 0 && switcher_beat > 0) limit_ = kHangAfter;
    if (!beats_ || (beats_->main != main_beat && beats_->switcher != switcher_beat)) {
      beats_ = Beats{main_beat, switcher_beat};
      quiet_ = base::Duration{0};
      return false;
    }
    quiet_ += gap < kLookGapMax ? gap : kLookGapMax;
    return quiet_ >= limit_;
  }

 private:
  struct Beats {
    std::uint64_t main;
    std::uint64_t switcher;
  };
  base::Duration start_within_;
  std::optional<Beats> beats_;  // when both had last moved on
  base::Duration seen_at_{};
  base::Duration quiet_{};
  base::Duration limit_;
};

}  // namespace agent
