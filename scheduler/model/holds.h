// Holds: why a waiting job must not be looked at. Each hold has an owner of its own, and only that
// owner takes it back: a job waits while any of them is set.
//
// Threads: none. Cost: O(1).
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <optional>

#include "scheduler/model/job.h"

namespace sched {

enum class HoldBy {
  kAdmin,         // an administrator's; a release ends it, as it ends the next two and kUser
  kLaunchFailed,  // its pods could not be started
  kMaxRequeue,    // its nodes failed too often (MaxBatchRequeue)
  kUser,          // its user's hold
  kSuspend,       // its user's suspend of a job that waits; only a resume ends it
  kImpossible,    // it could not run on empty nodes either; another try ends it
};

class Holds {
 public:
  void set(HoldBy hold) { set_.set(index(hold)); }
  void clear(HoldBy hold) { set_.reset(index(hold)); }
  bool has(HoldBy hold) const { return set_.test(index(hold)); }
  explicit operator bool() const { return set_.any(); }
  // Returns true if another hold is set than that it cannot run anywhere.
  bool by_someone() const {
    auto others = set_;
    others.reset(index(HoldBy::kImpossible));
    return others.any();
  }

  // Returns the reason to show: that of the first hold in the order of `HoldBy`. Holds that no
  // request says come first, because the caller must store them. nullopt if none is set.
  std::optional<Reason> shown() const {
    constexpr std::array kReasons{Reason::kJobHeldAdmin,      Reason::kLaunchFailedRequeuedHeld,
                                  Reason::kJobHoldMaxRequeue, Reason::kJobHeldUser,
                                  Reason::kJobHeldUser,       Reason::kBadConstraints};
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      if (set_.test(i)) return kReasons[i];
    }
    return std::nullopt;
  }

  // Returns the hold that this reason shows, if no request says it: the caller stores the reason.
  // nullopt for all other reasons.
  static std::optional<HoldBy> to_store(Reason reason) {
    if (reason == Reason::kJobHeldAdmin) return HoldBy::kAdmin;
    if (reason == Reason::kLaunchFailedRequeuedHeld) return HoldBy::kLaunchFailed;
    if (reason == Reason::kJobHoldMaxRequeue) return HoldBy::kMaxRequeue;
    return std::nullopt;
  }

  friend bool operator==(const Holds&, const Holds&) = default;

 private:
  static std::size_t index(HoldBy hold) { return static_cast<std::size_t>(hold); }

  std::bitset<6> set_;
};

}  // namespace sched
