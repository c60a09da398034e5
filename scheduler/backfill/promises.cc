#include "scheduler/backfill/promises.h"

#include <algorithm>
#include <utility>

namespace sched {

Promises::Promises(int node_count, base::Instant window_end)
    : window_end_{window_end}, of_node_(static_cast<std::size_t>(node_count)) {}

void Promises::add(const NodeSet& nodes, base::Instant begin, base::Instant end) {
  Promise promise{.begin = begin, .end = std::min(end, window_end_), .ranks = {}};
  if (promise.begin >= promise.end) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    promise.ranks.push_back(rank);
    of_node_[static_cast<std::size_t>(rank)].push_back({promise.begin, promise.end});
  }
  changes_.insert(promise.begin);
  if (promise.end < window_end_) changes_.insert(promise.end);
  promises_.push_back(std::move(promise));
  const std::size_t added = promises_.size() - 1;
  const auto insert = [&](std::vector<std::size_t>& order, base::Instant Promise::*key) {
    const auto later = [&](base::Instant at, std::size_t other) {
      return at < promises_[other].*key;
    };
    order.insert(std::upper_bound(order.begin(), order.end(), promises_[added].*key, later), added);
  };
  insert(by_begin_, &Promise::begin);
  insert(by_end_, &Promise::end);
}

bool Promises::overlaps(const NodeSet& nodes, base::Instant begin, base::Instant end) const {
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const std::vector<Span>& spans = of_node_[static_cast<std::size_t>(rank)];
    if (std::any_of(spans.begin(), spans.end(),
                    [&](const Span& span) { return span.end > begin && span.begin < end; })) {
      return true;
    }
  }
  return false;
}

std::optional<base::Instant> Promises::next_begin(const NodeSet& nodes, base::Instant after) const {
  std::optional<base::Instant> first;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    for (const Span& span : of_node_[static_cast<std::size_t>(rank)]) {
      if (span.begin > after && (!first || span.begin < *first)) first = span.begin;
    }
  }
  return first;
}

std::optional<base::Instant> Promises::next_free(base::Instant after) const {
  const auto next = std::upper_bound(
      by_end_.begin(), by_end_.end(), after,
      [&](base::Instant at, std::size_t promise) { return at < promises_[promise].end; });
  if (next == by_end_.end() || promises_[*next].end >= window_end_) return std::nullopt;
  return promises_[*next].end;
}

Promises::Sweep::Sweep(const Promises& promises, NodeSet nodes, base::Duration length)
    : promises_{promises},
      nodes_{std::move(nodes)},
      length_{length},
      free_{nodes_},
      blocked_(static_cast<std::size_t>(nodes_.size())) {}

// Whether a node of a promise that begins (or ends, by `key`) at the instant fits.
template <typename Fits>
bool Promises::any_at(base::Instant at, const std::vector<std::size_t>& order,
                      base::Instant Promise::*key, const Fits& fits) const {
  const auto earlier = [&](std::size_t promise, base::Instant instant) {
    return promises_[promise].*key < instant;
  };
  for (auto it = std::lower_bound(order.begin(), order.end(), at, earlier);
       it != order.end() && promises_[*it].*key == at; ++it) {
    const std::vector<int>& ranks = promises_[*it].ranks;
    if (std::any_of(ranks.begin(), ranks.end(), fits)) return true;
  }
  return false;
}

bool Promises::free_just_after(int rank, base::Instant at) const {
  const std::vector<Span>& spans = of_node_[static_cast<std::size_t>(rank)];
  return std::none_of(spans.begin(), spans.end(),
                      [&](const Span& span) { return span.begin <= at && span.end > at; });
}

bool Promises::free_just_before(int rank, base::Instant at) const {
  const std::vector<Span>& spans = of_node_[static_cast<std::size_t>(rank)];
  return std::none_of(spans.begin(), spans.end(),
                      [&](const Span& span) { return span.begin < at && span.end >= at; });
}

// The instants at which the promised nodes change cut the time into slots. The end of a slot counts
// if the slot before it begins while the job would run. An instant at which one promise ends and
// another of the same nodes begins changes nothing.
std::optional<base::Instant> Promises::next_gain(const NodeSet& nodes, base::Instant start,
                                                 base::Duration length) const {
  base::Instant slot_begin = start;
  base::Instant begin_before = start;
  for (auto at = changes_.upper_bound(start); at != changes_.end(); ++at) {
    if (begin_before > start + length) return std::nullopt;
    bool freed = false;
    bool gained = false;
    any_at(*at, by_end_, &Promise::end, [&](int rank) {
      if (!free_just_after(rank, *at)) return false;
      freed = true;
      gained = nodes.test(rank);
      return gained;
    });
    if (gained) return *at;
    const bool taken = any_at(*at, by_begin_, &Promise::begin,
                              [&](int rank) { return free_just_before(rank, *at); });
    if (freed || taken) begin_before = std::exchange(slot_begin, *at);
  }
  return std::nullopt;
}

// Promises enter in the order of their begins and leave in the order of their ends. One that leaves
// has entered before, as its begin is not after the start.
const NodeSet& Promises::Sweep::at(base::Instant start) {
  const std::vector<Promise>& all = promises_.promises_;
  const base::Instant last = start + length_;
  for (; entered_ < all.size() && all[promises_.by_begin_[entered_]].begin <= last; ++entered_) {
    for (const int rank : all[promises_.by_begin_[entered_]].ranks) {
      if (blocked_[static_cast<std::size_t>(rank)]++ == 0) free_.reset(rank);
    }
  }
  for (; left_ < all.size() && all[promises_.by_end_[left_]].end <= start; ++left_) {
    for (const int rank : all[promises_.by_end_[left_]].ranks) {
      if (--blocked_[static_cast<std::size_t>(rank)] == 0 && nodes_.test(rank)) free_.set(rank);
    }
  }
  return free_;
}

}  // namespace sched
