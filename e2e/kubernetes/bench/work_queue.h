// WorkQueue: keys that need a look, each at most once at a time. Three sets, as client-go has them
// (SOURCE: k8s.io/client-go util/workqueue/queue.go):
//
//   dirty       keys that need processing
//   processing  keys that a worker got and has not called done() for
//   queue       the order of the dirty keys that no worker processes
//
// Invariant: queue = dirty \ processing, without repetition. So a key that is added while it is
// processed is not given out a second time meanwhile, but once more after done(): no change is lost
// and no two workers have the same key. Adding a key that is dirty already does nothing.
//
// Thread-safe. A waiting get() ends at once on stop and on an addition. The number of keys is
// bounded by the number of objects; cost of each call O(log n).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "base/check.h"

namespace kubernetes_bench {

template <typename Key>
class WorkQueue {
 public:
  void add(const Key& key) {
    {
      const std::lock_guard lock{mu_};
      if (!dirty_.insert(key).second || processing_.contains(key)) return;
      queue_.push_back(key);
    }
    changed_.notify_one();
  }

  // Returns the key that waited longest; nullopt if none is ready. Call done() when processed.
  std::optional<Key> try_get() {
    const std::lock_guard lock{mu_};
    return take_locked();
  }

  // Waits for one. nullopt if `stop` is requested.
  std::optional<Key> get(std::stop_token stop) {
    std::unique_lock lock{mu_};
    (void)changed_.wait(lock, stop, [this] { return !queue_.empty(); });
    return stop.stop_requested() ? std::nullopt : take_locked();
  }

  // REQUIRES: the key was got and is not done yet.
  void done(const Key& key) {
    {
      const std::lock_guard lock{mu_};
      CHECK(processing_.erase(key) == 1, "done() for a key that no worker has");
      if (dirty_.contains(key)) queue_.push_back(key);
    }
    changed_.notify_one();
  }

  // Keys that are ready now, without those that are processed.
  std::size_t size() const {
    const std::lock_guard lock{mu_};
    return queue_.size();
  }

  // CHECKs what the type promises. Cost: O(n log n).
  void check_invariants() const {
    const std::lock_guard lock{mu_};
    std::set<Key> queued(queue_.begin(), queue_.end());
    CHECK(queued.size() == queue_.size(), "a key is queued twice");
    std::set<Key> want;
    for (const Key& key : dirty_) {
      if (!processing_.contains(key)) want.insert(key);
    }
    CHECK(queued == want, "queue differs from dirty without processing");
  }

 private:
  std::optional<Key> take_locked() {
    if (queue_.empty()) return std::nullopt;
    Key key = std::move(queue_.front());
    queue_.pop_front();
    dirty_.erase(key);
    processing_.insert(key);
    return key;
  }

  mutable std::mutex mu_;  // guards all below
  std::condition_variable_any changed_;
  std::deque<Key> queue_;
  std::set<Key> dirty_;
  std::set<Key> processing_;
};

}  // namespace kubernetes_bench
