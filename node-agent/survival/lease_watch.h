// When the operator was last seen alive, and whether that is too long ago: then the node fails open
// and everything runs, since sharing a CPU is slow and a pod frozen forever is an outage.
// (architecture.md 5) Pure; the caller reads the Lease about once a minute.
#pragma once

#include <optional>

#include "base/time.h"

namespace agent {

struct LeaseSeen {
  base::Duration at{};                        // monotonic (CLOCK_BOOTTIME)
  std::optional<base::Instant> renew_time{};  // what the Lease said then

  friend bool operator==(const LeaseSeen&, const LeaseSeen&) = default;
};

class LeaseWatch {
 public:
  // `before`: from the journal of the process before this one. Without it the operator counts as
  // seen now: an agent that starts on an old cluster gives it `failOpenAfter` to show itself.
  LeaseWatch(std::optional<LeaseSeen> before, base::Duration now)
      : seen_{before && before->at <= now ? *before : LeaseSeen{.at = now}} {}

  // The Lease was read. Returns true if it had been renewed since the last time: only that counts,
  // since the node's and the operator's clocks may differ.
  bool read(std::optional<base::Instant> renew_time, base::Duration now) {
    if (!renew_time || renew_time == seen_.renew_time) return false;
    const bool first = !seen_.renew_time;
    seen_.renew_time = renew_time;
    if (first) return false;  // Nothing to compare with: not known to be a renewal.
    seen_.at = now;
    return true;
  }

  const LeaseSeen& seen() const { return seen_; }

  bool failed_open(base::Duration now, base::Duration after) const {
    return now - seen_.at >= after;
  }
  // Returns when that begins, unless it is seen renewed before.
  base::Duration fails_open_at(base::Duration after) const { return seen_.at + after; }

 private:
  LeaseSeen seen_;
};

// Whether the node fails open. The limit alone does not decide: after a machine was suspended it is
// over, although the operator may have renewed all the time. So the Lease is asked for once more.
// Pure.
class FailOpen {
 public:
  // An API server that does not answer by then is away, and the operator may be.
  static constexpr base::Duration kAskWithin = std::chrono::seconds{5};

  // `is_over`: LeaseWatch::failed_open, with all readings that were answered. `tried`: when the
  // last reading began that has ended, answered or not. Returns true if the Lease must be read
  // now.
  bool look(bool is_over, std::optional<base::Duration> tried, base::Duration now) {
    if (!is_over) {
      since_.reset();
      is_open_ = false;
      return false;
    }
    const bool asks = !since_;
    if (asks) since_ = now;
    is_open_ = is_open_ || (tried && *tried >= *since_) || now - *since_ >= kAskWithin;
    return asks;
  }
  bool is_open() const { return is_open_; }
  // Returns when to look again at the latest; nullopt: nothing is asked.
  std::optional<base::Duration> look_again_at() const {
    if (!since_ || is_open_) return std::nullopt;
    return *since_ + kAskWithin;
  }

 private:
  std::optional<base::Duration> since_;  // the limit is over
  bool is_open_ = false;
};

// Returns how long until the next reading: about a minute, never more than a quarter of the limit;
// the caller adds jitter.
constexpr base::Duration lease_read_interval(base::Duration fail_open_after) {
  constexpr base::Duration kUsual = std::chrono::seconds{60};
  constexpr base::Duration kLeast = std::chrono::milliseconds{250};
  const base::Duration quarter = fail_open_after / 4;
  return quarter < kLeast ? kLeast : (quarter < kUsual ? quarter : kUsual);
}

}  // namespace agent
