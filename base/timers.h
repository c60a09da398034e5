// Timers<Key>: at most one instant for each key, with the earliest at hand. No clock and no
// callbacks: the owner asks next() how long it may wait, and take_due() what is due.
//
// Invariant: both containers hold the same pairs, ordered by key and by instant. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"

namespace base {

template <typename Key>
class Timers {
 public:
  // Makes the key due at this instant, whatever was set before.
  void set(const Key& key, Instant at) {
    const auto [found, is_new] = instant_of_.try_emplace(key, at);
    if (!is_new) move(found, at);
    if (is_new) by_instant_.emplace(at, key);
  }
  // Makes the key due at this instant, or leaves it at the one set before if that is earlier.
  void set_no_later(const Key& key, Instant at) {
    const auto [found, is_new] = instant_of_.try_emplace(key, at);
    if (is_new) {
      by_instant_.emplace(at, key);
    } else if (at < found->second) {
      move(found, at);
    }
  }
  // Removes the key's timer, if it has one.
  void clear(const Key& key) {
    const auto found = instant_of_.find(key);
    if (found == instant_of_.end()) return;
    by_instant_.erase(Entry{found->second, key});
    instant_of_.erase(found);
  }

  bool empty() const { return instant_of_.empty(); }
  // Returns when the key is due; nullopt if it has no timer.
  std::optional<Instant> at(const Key& key) const {
    const auto found = instant_of_.find(key);
    if (found == instant_of_.end()) return std::nullopt;
    return found->second;
  }
  // Returns the earliest instant of all; nullopt if there is none.
  std::optional<Instant> next() const {
    if (by_instant_.empty()) return std::nullopt;
    return by_instant_.begin()->first;
  }
  // Returns the earliest instant that is still to come; nullopt if there is none.
  std::optional<Instant> next_after(Instant now) const {
    const auto found = by_instant_.upper_bound(now);
    if (found == by_instant_.end()) return std::nullopt;
    return found->first;
  }
  // By key.
  const std::map<Key, Instant>& all() const { return instant_of_; }

  // Clears the timers that are due by now, those that have been due for the longest time first, and
  // at most `most` of them. Returns their keys, ascending.
  std::vector<Key> take_due(Instant now, std::size_t most = kAll) {
    std::vector<Key> due;
    while (due.size() < most && !by_instant_.empty() && by_instant_.begin()->first <= now) {
      due.push_back(by_instant_.begin()->second);
      instant_of_.erase(due.back());
      by_instant_.erase(by_instant_.begin());
    }
    std::sort(due.begin(), due.end());
    return due;
  }

 private:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  using Entry = std::pair<Instant, Key>;
  // Also finds by the instant alone.
  struct Earlier {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a < b; }
    bool operator()(const Instant& a, const Entry& b) const { return a < b.first; }
    bool operator()(const Entry& a, const Instant& b) const { return a.first < b; }
  };

  // Moves a key; a pair of by_instant_ contains the instant, so it is made again.
  void move(typename std::map<Key, Instant>::iterator found, Instant at) {
    if (found->second == at) return;
    by_instant_.erase(Entry{found->second, found->first});
    by_instant_.emplace(at, found->first);
    found->second = at;
  }

  std::map<Key, Instant> instant_of_;
  std::set<Entry, Earlier> by_instant_;
};

}  // namespace base
