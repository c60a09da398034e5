// The way into the operator's loop from other threads: changed objects from the informers and the
// results of writes. Changes of one object between two looks are one change.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "kube/run_loop.h"
#include "operator/loop/kinds.h"
#include "operator/write/effect.h"

namespace control {

// The newest state by key; null = gone. An object that was deleted and made again is one change:
// compare UIDs.
template <typename T>
using Changes = std::map<kube::ObjectKey, std::shared_ptr<const T>>;

// Threads: any may call any function; the loop takes. Cost: O(log changes) under a mutex; take()
// moves everything out in O(kinds).
class Inbox {
 public:
  struct Batch {
    WatchedKinds::Tuple<Changes> changes;
    std::deque<Outcome> outcomes;  // of effects, in the order in which they came

    template <typename T>
    const Changes<T>& of() const {
      return std::get<Changes<T>>(changes);
    }
  };

  // Woken whenever something arrives, or soon after. Must live longer than this.
  explicit Inbox(kube::Waker& waker) : waker_{waker} {}

  // A change that may wait is taken with the next one that may not, or after kGather.
  template <typename T>
  void changed(std::shared_ptr<const T> object, bool may_wait = false) {
    kube::ObjectKey key = kube::key_of(object->metadata);
    put<T>(std::move(key), std::move(object), may_wait);
  }
  template <typename T>
  void deleted(const T& last, bool may_wait = false) {
    put<T>(kube::key_of(last.metadata), nullptr, may_wait);
  }
  void completed(Outcome outcome) {
    {
      const std::lock_guard lock{mu_};
      batch_.outcomes.push_back(std::move(outcome));
    }
    waker_.wake();
  }

  Batch take() {
    const std::lock_guard lock{mu_};
    return std::exchange(batch_, {});
  }

 private:
  // As long as the loop rests at most after a step (pace.h).
  static constexpr base::Duration kGather = std::chrono::milliseconds{50};

  template <typename T>
  void put(kube::ObjectKey key, std::shared_ptr<const T> object, bool may_wait) {
    {
      const std::lock_guard lock{mu_};
      std::get<Changes<T>>(batch_.changes).insert_or_assign(std::move(key), std::move(object));
    }
    may_wait ? waker_.wake_within(kGather) : waker_.wake();
  }

  kube::Waker& waker_;
  std::mutex mu_;
  Batch batch_;  // guarded by mu_
};

}  // namespace control
