// The way into the operator's loop from other threads: changed objects from the informers and the
// results of writes. Changes of one object between two looks are one change.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kube/run_loop.h"
#include "operator/gang/gang_observation.h"
#include "operator/jobs/pod_index.h"
#include "operator/loop/kinds.h"
#include "operator/write/effect.h"

namespace control {

// The newest state by key; null = gone. An object that was deleted and made again is one change:
// compare UIDs.
template <typename T>
using Changes = std::map<kube::ObjectKey, std::shared_ptr<const T>>;

// Objects that are gone, also those that were created again under their names.
template <typename T>
struct Gone {
  struct One {
    std::string uid;
    std::string version;  // of the deletion, or of the last state that was seen
  };
  std::vector<One> all;
};

// Threads: any may call any function; the loop takes. Cost: O(log changes) under a mutex; take()
// moves everything out in O(kinds).
class Inbox {
 public:
  struct Batch {
    WatchedKinds::Tuple<Changes> changes;
    // States of pods that were replaced before the loop saw them, in their order, of which
    // something follows: the last one of a pod that had ended when it was deleted says what the pod
    // did; one that had been deleted and not ended yet, or the other way round, which came first.
    std::vector<std::shared_ptr<const kube::Pod>> earlier_pods;
    WatchedKinds::Tuple<Gone> gone;
    std::deque<Outcome> outcomes;  // of effects, in the order in which they came

    template <typename T>
    const Changes<T>& of() const {
      return std::get<Changes<T>>(changes);
    }
    template <typename T>
    const std::vector<typename Gone<T>::One>& gone_of() const {
      return std::get<Gone<T>>(gone).all;
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
  void deleted(std::shared_ptr<const T> last, bool may_wait = false) {
    kube::ObjectKey key = kube::key_of(last->metadata);
    note_gone(*last);
    if constexpr (std::is_same_v<T, kube::Pod>) note_end(std::move(last));
    put<T>(std::move(key), nullptr, may_wait);
  }
  // `last` was deleted, and another object has its name.
  template <typename T>
  void replaced(const T& last, std::shared_ptr<const T> object, bool may_wait = false) {
    note_gone(last);
    changed<T>(std::move(object), may_wait);
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
    taken_ = true;
    return std::exchange(batch_, {});
  }

 private:
  // The longest rest of the loop after a step (pace.h).
  static constexpr base::Duration kGather = std::chrono::milliseconds{50};

  // Ignores other pods: how they ended has no consequences.
  void note_end(std::shared_ptr<const kube::Pod> pod) {
    if (!is_finished(*pod) || job_uid_of(*pod).empty()) return;
    const std::lock_guard lock{mu_};
    if (taken_) batch_.earlier_pods.push_back(std::move(pod));
  }
  // `was` has not been taken yet, and is replaced. REQUIRES: mu_ is held.
  void note_order(const std::shared_ptr<const kube::Pod>& was,
                  const std::shared_ptr<const kube::Pod>& object) {
    const bool is_same =
        was != nullptr && object != nullptr && was->metadata.uid == object->metadata.uid;
    if (!taken_ || !is_same || !is_finished(*object) || job_uid_of(*was).empty()) return;
    if (is_finished(*was) != was->metadata.deletion_timestamp.has_value()) {
      batch_.earlier_pods.push_back(was);
    }
  }

  template <typename T>
  void note_gone(const T& last) {
    const std::lock_guard lock{mu_};
    if (!taken_) return;
    std::get<Gone<T>>(batch_.gone)
        .all.push_back({last.metadata.uid, last.metadata.resource_version});
  }

  // Before the first look no part knows the object, so its deletion is dropped: a stand-by holds
  // what exists, and not what has come and gone for weeks.
  template <typename T>
  void put(kube::ObjectKey key, std::shared_ptr<const T> object, bool may_wait) {
    {
      const std::lock_guard lock{mu_};
      auto& changes = std::get<Changes<T>>(batch_.changes);
      if (object == nullptr && !taken_) {
        changes.erase(key);
      } else {
        auto& change = changes[std::move(key)];
        if constexpr (std::is_same_v<T, kube::Pod>) note_order(change, object);
        change = std::move(object);
      }
    }
    may_wait ? waker_.wake_within(kGather) : waker_.wake();
  }

  kube::Waker& waker_;
  std::mutex mu_;
  Batch batch_;         // guarded by mu_
  bool taken_ = false;  // guarded by mu_
};

}  // namespace control
