// WorkQueue: keys that need a look, each at most once at a time. Three sets, as client-go has them
// (SOURCE: k8s.io/client-go util/workqueue/queue.go):
//
//   dirty       keys that need processing
//   processing  keys that somebody got and has not called done() for
//   queue       the order of the dirty keys that nobody processes
//
// Invariant: queue = dirty \ processing, without repetition. So a key that is added while it is
// processed is not given out a second time meanwhile, but once more after done(): no change is lost
// and no two workers have the same key. Adding a key that is dirty already does nothing.
//
// Thread-safe. A waiting get() ends at once on stop, an addition, or the next delayed key. The
// number of keys is bounded by the number of objects; cost of each call O(log n).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "kube/backoff.h"
#include "kube/clock.h"
#include "scheduler/base/check.h"

namespace kube {

template <typename Key>
class WorkQueue {
 public:
  explicit WorkQueue(const Clock& clock,
                     BackoffOptions backoff = {.first = std::chrono::milliseconds{5},
                                               .max = std::chrono::seconds{30}})
      : clock_{clock}, backoff_{backoff} {}

  void add(const Key& key) {
    {
      const std::lock_guard lock{mu_};
      add_locked(key);
    }
    changed_.notify_one();
  }

  // At now + delay; the earlier instant wins when the key waits already. It is forgotten nowhere:
  // add() in the meantime does not cancel it.
  void add_after(const Key& key, base::Duration delay) {
    if (delay <= base::Duration{}) return add(key);
    {
      const std::lock_guard lock{mu_};
      delay_locked(key, clock_.monotonic() + delay);
    }
    changed_.notify_one();
  }

  // After a failure: add_after with back-off.first, doubled for each failure in a row, at most
  // back-off.max.
  void add_rate_limited(const Key& key) {
    base::Duration delay{};
    {
      const std::lock_guard lock{mu_};
      const std::int32_t failures = failures_[key]++;
      // 2^40 · first would be beyond any max.
      delay = failures > 40
                  ? backoff_.max
                  : std::min(backoff_.first * (std::int64_t{1} << failures), backoff_.max);
    }
    add_after(key, delay);
  }
  // It worked: the next failure is the first again.
  void forget(const Key& key) {
    const std::lock_guard lock{mu_};
    failures_.erase(key);
  }
  std::int32_t failures(const Key& key) const {
    const std::lock_guard lock{mu_};
    const auto found = failures_.find(key);
    return found == failures_.end() ? 0 : found->second;
  }

  // The key that waited longest; call done() for it when processed. Nothing when none is ready.
  std::optional<Key> try_get() {
    const std::lock_guard lock{mu_};
    promote_locked(clock_.monotonic());
    return take_locked();
  }

  // Waits for one. Nothing when `stop` is requested. Waits by the machine's clock.
  std::optional<Key> get(std::stop_token stop) {
    std::unique_lock lock{mu_};
    while (!stop.stop_requested()) {
      const base::Duration now = clock_.monotonic();
      promote_locked(now);
      if (auto key = take_locked()) return key;
      const auto ready = [this] { return !queue_.empty(); };
      if (delayed_.empty()) {
        (void)changed_.wait(lock, stop, [&] { return ready() || !delayed_.empty(); });
      } else {
        const base::Duration first = delayed_.begin()->first;
        (void)changed_.wait_for(lock, stop, first - now, [&] {
          return ready() || delayed_.empty() || delayed_.begin()->first < first;
        });
      }
    }
    return std::nullopt;
  }

  // REQUIRES: the key was got and is not done yet.
  void done(const Key& key) {
    {
      const std::lock_guard lock{mu_};
      CHECK(processing_.erase(key) == 1, "done() for a key that nobody got");
      if (dirty_.contains(key)) queue_.push_back(key);
    }
    changed_.notify_one();
  }

  // Keys that are ready now, without those that are delayed or processed.
  std::size_t size() const {
    const std::lock_guard lock{mu_};
    return queue_.size();
  }

  // How long until the next delayed key is ready (0: a key is ready); nothing when there is none.
  std::optional<base::Duration> until_next() const {
    const std::lock_guard lock{mu_};
    if (!queue_.empty()) return base::Duration{};
    if (delayed_.empty()) return std::nullopt;
    return std::max(delayed_.begin()->first - clock_.monotonic(), base::Duration{});
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
    CHECK(delayed_.size() == delayed_until_.size(), "the delayed keys' indexes differ");
    for (const auto& [at, key] : delayed_) {
      const auto found = delayed_until_.find(key);
      CHECK(found != delayed_until_.end() && found->second == at);
    }
  }

 private:
  void add_locked(const Key& key) {
    if (!dirty_.insert(key).second) return;
    if (!processing_.contains(key)) queue_.push_back(key);
  }

  void delay_locked(const Key& key, base::Duration at) {
    const auto [found, fresh] = delayed_until_.try_emplace(key, at);
    if (!fresh) {
      if (found->second <= at) return;
      delayed_.erase({found->second, key});
      found->second = at;
    }
    delayed_.emplace(at, key);
  }

  void promote_locked(base::Duration now) {
    while (!delayed_.empty() && delayed_.begin()->first <= now) {
      const Key key = delayed_.begin()->second;
      delayed_.erase(delayed_.begin());
      delayed_until_.erase(key);
      add_locked(key);
    }
  }

  std::optional<Key> take_locked() {
    if (queue_.empty()) return std::nullopt;
    Key key = std::move(queue_.front());
    queue_.pop_front();
    dirty_.erase(key);
    processing_.insert(key);
    return key;
  }

  const Clock& clock_;
  const BackoffOptions backoff_;

  mutable std::mutex mu_;  // guards all below
  std::condition_variable_any changed_;
  std::deque<Key> queue_;
  std::set<Key> dirty_;
  std::set<Key> processing_;
  std::set<std::pair<base::Duration, Key>> delayed_;
  std::map<Key, base::Duration> delayed_until_;
  std::map<Key, std::int32_t> failures_;
};

}  // namespace kube
