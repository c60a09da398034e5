// Newest: which of two states of an object is the newer one, for a kind whose objects come by a
// watch and in the answers to writes. The two overtake each other: an answer may be late by as long
// as a call may take, and a watch by as long as it may be silent.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "kube/api/meta.h"
#include "operator/publish/mirror.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the objects that were deleted within
// kRemembered.
template <kube::ApiObject T>
class Newest {
 public:
  // Longer than any answer may be late: five tries of 30 s, and their back-off.
  static constexpr base::Duration kRemembered = std::chrono::minutes{10};

  // Notes that a watch has shown that the object with that UID is gone.
  void saw_gone(const std::string& uid, base::Instant now) {
    while (!by_age_.empty() && by_age_.front().first + kRemembered < now) {
      gone_.erase(by_age_.front().second);
      by_age_.pop_front();
    }
    if (gone_.insert(uid).second) by_age_.emplace_back(now, uid);
  }

  // Returns true if `object`, of a watch or of an answer, may take the place of `known`, the newest
  // one that is known under its name; null: none. A deleted object does not come back, and an older
  // version does not either.
  bool is_news(const T& object, const T* known) const {
    if (gone_.contains(object.metadata.uid)) return false;
    return known == nullptr ||
           is_newer_version(object.metadata.resource_version, known->metadata.resource_version);
  }

 private:
  std::set<std::string> gone_;  // UIDs
  std::deque<std::pair<base::Instant, std::string>> by_age_;
};

}  // namespace control
