// Attempts: the tries of one write. At most one is under way, and after a failure the next one
// waits. Everything that converges on the API server has this in common; a value that is compared
// with what is stored is a Mirror.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace control {

// Doubled for each failure in a row.
struct BackOff {
  base::Duration first = std::chrono::milliseconds{50};
  base::Duration max = std::chrono::seconds{10};
  friend bool operator==(const BackOff&, const BackOff&) = default;
};

class Attempts {
 public:
  Attempts() = default;
  explicit Attempts(BackOff back_off) : back_off_{back_off} {}

  bool is_under_way() const { return under_way_; }
  bool may_begin(base::Instant now) const { return !under_way_ && not_before_ <= now; }
  // Returns when may_begin holds; kNever while one is under way, since its outcome will tell.
  base::Instant due() const { return under_way_ ? base::kNever : not_before_; }

  void begin() { under_way_ = true; }
  // Each of these ends the try that is under way.
  void succeeded() {
    under_way_ = false;
    failures_ = 0;
  }
  // Another writer was faster: the next try, on what is stored now, need not wait.
  void lost_race() { under_way_ = false; }
  void failed(base::Instant now) {
    under_way_ = false;
    const base::Duration delay = back_off_.first * (std::int64_t{1} << std::min(failures_, 20));
    not_before_ = now + std::min(delay, back_off_.max);
    ++failures_;
  }
  // Forbids any try before that.
  void rest_until(base::Instant at) { not_before_ = std::max(not_before_, at); }

 private:
  BackOff back_off_;
  bool under_way_ = false;
  base::Instant not_before_{};
  int failures_ = 0;  // in a row
};

}  // namespace control
