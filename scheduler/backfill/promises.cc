#include "scheduler/backfill/promises.h"

#include <algorithm>
#include <utility>

namespace sched {

Promises::Promises(int node_count, base::Instant window_end)
    : window_end_{window_end}, place_of_(static_cast<std::size_t>(node_count), -1) {}

// A promise is kept four times, for the four questions: by node (is it free then?), in the order of
// begins and of ends (a sweep), and as instants at which something changes (Slurm's slots). The
// nodes themselves are kept once, in one vector, of which a promise has a range.
void Promises::add(const NodeSet& nodes, base::Instant begin, base::Instant end) {
  Promise promise{.begin = begin,
                  .end = std::min(end, window_end_),
                  .places_begin = places_.size(),
                  .places_end = places_.size()};
  // Behind the window nothing is kept for anyone.
  if (promise.begin >= promise.end) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    int& place = place_of_[static_cast<std::size_t>(rank)];
    if (place < 0) {
      place = static_cast<int>(nodes_.size());
      nodes_.push_back({.rank = rank, .spans = {}});
    }
    places_.push_back(place);
    nodes_[static_cast<std::size_t>(place)].spans.push_back({promise.begin, promise.end});
  }
  promise.places_end = places_.size();
  // The end of the window is not a change: Slurm's last slot ends there.
  const auto change_at = [&](base::Instant at) {
    const auto place = std::ranges::lower_bound(changes_, at);
    if (place == changes_.end() || *place != at) changes_.insert(place, at);
  };
  change_at(promise.begin);
  if (promise.end < window_end_) change_at(promise.end);
  const auto insert = [&](std::vector<Promise>& order, base::Instant Promise::*key) {
    const auto later = [&](base::Instant at, const Promise& other) { return at < other.*key; };
    order.insert(std::upper_bound(order.begin(), order.end(), promise.*key, later), promise);
  };
  // Two orders of the same promises, so that a sweep meets begins and ends as its start moves on.
  insert(by_begin_, &Promise::begin);
  insert(by_end_, &Promise::end);
}

// Half-open intervals: a promise that begins when another ends does not overlap it.
bool Promises::overlaps(const NodeSet& nodes, base::Instant begin, base::Instant end) const {
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const Promised* const node = promised_at(rank);
    if (node != nullptr && std::ranges::any_of(node->spans, [&](const Span& span) {
          return span.end > begin && span.begin < end;
        })) {
      return true;
    }
  }
  return false;
}

// Cost: O(promises of these nodes).
std::optional<base::Instant> Promises::next_begin(const NodeSet& nodes, base::Instant after) const {
  std::optional<base::Instant> first;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const Promised* const node = promised_at(rank);
    if (node == nullptr) continue;
    for (const Span& span : node->spans) {
      if (span.begin > after && (!first || span.begin < *first)) first = span.begin;
    }
  }
  return first;
}

// Before all instants: the first at() brings in what is in the way at its start.
void Promises::Sweep::begin(const NodeSet& nodes, base::Duration length) {
  nodes_ = free_ = nodes;
  length_ = length;
  marked_ = NodeSet{nodes.size()};
  count_ = nodes.count();
  marked_count_ = 0;
  blocked_.assign(promises_.nodes_.size(), 0);
  last_ = base::Instant::min();
  entered_ = left_ = 0;
}

// blocked_ says about each node how many of its promises overlap [start, start + length]: those
// that have entered and not left. A node is free while that is 0. As the start only moves on, each
// promise enters once and leaves once, so a sweep over all starts costs as much as one look at
// every promise. Promises leave in the order of their ends and enter in the order of their begins;
// one that ends before it has entered does neither.
const NodeSet& Promises::Sweep::at(base::Instant start) {
  for (; left_ < promises_.by_end_.size() && promises_.by_end_[left_].end <= start; ++left_) {
    const Promise& promise = promises_.by_end_[left_];
    if (promise.begin > last_) continue;
    for (std::size_t i = promise.places_begin; i < promise.places_end; ++i) {
      const auto place = static_cast<std::size_t>(promises_.places_[i]);
      // Counted, because several promises of one node may be in the way of a long job.
      if (--blocked_[place] != 0) continue;
      const int rank = promises_.nodes_[place].rank;
      if (!nodes_.test(rank)) continue;
      free_.set(rank);
      ++count_;
      if (marked_.test(rank)) ++marked_count_;
    }
  }
  last_ = start + length_;
  for (; entered_ < promises_.by_begin_.size() && promises_.by_begin_[entered_].begin <= last_;
       ++entered_) {
    const Promise& promise = promises_.by_begin_[entered_];
    if (promise.end <= start) continue;
    for (std::size_t i = promise.places_begin; i < promise.places_end; ++i) {
      const auto place = static_cast<std::size_t>(promises_.places_[i]);
      if (blocked_[place]++ != 0) continue;
      const int rank = promises_.nodes_[place].rank;
      if (!nodes_.test(rank)) continue;
      free_.reset(rank);
      --count_;
      if (marked_.test(rank)) --marked_count_;
    }
  }
  return free_;
}

// Promises that ended by the last start have left, so the next in the order of ends is the first
// after it. It need not be of nodes in question; then the caller finds no more nodes there and asks
// again.
std::optional<base::Instant> Promises::Sweep::next_free() const {
  if (left_ == promises_.by_end_.size()) return std::nullopt;
  const base::Instant end = promises_.by_end_[left_].end;
  if (end >= promises_.window_end_) return std::nullopt;
  return end;
}

}  // namespace sched
