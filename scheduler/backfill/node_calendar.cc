#include "scheduler/backfill/node_calendar.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched {

NodeCalendar::NodeCalendar(const Cluster& cluster, const JobBooks& books, base::Instant window_end)
    : cluster_{cluster},
      books_{books},
      window_end_{window_end},
      place_of_(static_cast<std::size_t>(cluster.node_count()), -1) {}

// An entry is noted four times, for the four questions: by node (is it kept then?), in the order of
// begins and of ends (a sweep), and as instants at which something changes (Slurm's slots). The
// nodes themselves are noted once, in one vector, of which an entry has a range.
void NodeCalendar::add(const NodeSet& nodes, base::Instant begin, base::Instant end,
                       const std::optional<Who>& claimant) {
  Entry entry{{.begin = begin, .end = std::min(end, window_end_), .claimant = claimant},
              places_.size(),
              places_.size()};
  if (entry.begin >= entry.end) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    int& place = place_of_[static_cast<std::size_t>(rank)];
    if (place < 0) {
      place = static_cast<int>(nodes_.size());
      nodes_.push_back({.rank = rank, .spans = {}});
    }
    places_.push_back(place);
    nodes_[static_cast<std::size_t>(place)].spans.push_back(entry);
  }
  entry.places_end = places_.size();
  // Slurm's slots know of promises alone. The end of the window is not a change: the last slot ends
  // there.
  const auto change_at = [&](base::Instant at) {
    const auto place = std::ranges::lower_bound(changes_, at);
    if (place == changes_.end() || *place != at) changes_.insert(place, at);
  };
  if (!claimant) change_at(entry.begin);
  if (!claimant && entry.end < window_end_) change_at(entry.end);
  const auto insert = [&](std::vector<Entry>& order, base::Instant Span::*key) {
    const auto later = [&](base::Instant at, const Entry& other) { return at < other.*key; };
    order.insert(std::upper_bound(order.begin(), order.end(), entry.*key, later), entry);
  };
  // Two orders of the same entries, so that a sweep meets begins and ends as its start moves on.
  insert(by_begin_, &Span::begin);
  insert(by_end_, &Span::end);
}

void NodeCalendar::read_claims(base::Instant now) {
  const auto is_claim = [](const Span& span) { return span.claimant.has_value(); };
  if (std::ranges::any_of(by_end_, is_claim)) {
    std::erase_if(by_begin_, is_claim);
    std::erase_if(by_end_, is_claim);
    for (Kept& node : nodes_) std::erase_if(node.spans, is_claim);
  }
  for (const JobId id : books_.claimants()) enter_claim(*books_.find(id), now);
}

// A claim has one tier, though the preemptor may wait in several partitions: the highest, since it
// may start in that partition.
//
// The nodes of a preemptor's claim come free one after the other, and it starts with the last of
// them. Until its victims are gone the others are for jobs that are over by then. A job that its
// user has resumed waits on its nodes for the ends of any jobs.
void NodeCalendar::enter_claim(const Job& claimant, base::Instant now) {
  Who who{.job = claimant.id, .tier = 0};
  if (claimant.allocated()) who.tier = cluster_.partition(*claimant.partition).tier();
  for (const QueueRecord& record : claimant.queued.in) {
    who.tier = std::max(who.tier, cluster_.partition(record.partition).tier());
  }
  const NodeSet nodes = ranks_of(cluster_, *claimant.claim);
  const NodeSet at_once = claimant.allocated() ? nodes : with_victims(claimant);
  add(at_once, now, window_end_, who);
  // A job that ends just then is over in time.
  add(nodes - at_once, victims_end(claimant) + base::Duration{1}, window_end_, who);
}

// The victims of a claimant are gone by then, unless they resist.
base::Instant NodeCalendar::victims_end(const Job& claimant) const {
  const ClusterParameters& parameters = cluster_.parameters();
  return claimant.claim_until - parameters.kill_wait - parameters.message_timeout;
}

// Returns the nodes of its claim on which victims of it still are.
NodeSet NodeCalendar::with_victims(const Job& claimant) const {
  NodeSet nodes = cluster_.no_nodes();
  for_each_rank(cluster_, *claimant.claim, [&](int rank, const NodeAllocation& use) {
    const auto& there = books_.usage().jobs_on(use.node);
    const bool any = std::any_of(there.begin(), there.end(), [&](const Job* job) {
      return job->ending && job->ending->preemptor == claimant.id;
    });
    if (any) nodes.set(rank);
  });
  return nodes;
}

// Half-open intervals: an entry that begins when another ends does not overlap it.
bool NodeCalendar::overlaps(const NodeSet& nodes, base::Instant begin, base::Instant end,
                            const std::optional<Who>& who) const {
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const Kept* const node = kept_at(rank);
    if (node != nullptr && std::ranges::any_of(node->spans, [&](const Span& span) {
          return span.end > begin && span.begin < end && span.is_in_way_of(who);
        })) {
      return true;
    }
  }
  return false;
}

// Cost: O(entries of these nodes).
std::optional<base::Instant> NodeCalendar::next_kept_from(const Who& who, const NodeSet& nodes,
                                                          base::Instant after) const {
  std::optional<base::Instant> first;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    const Kept* const node = kept_at(rank);
    if (node == nullptr) continue;
    for (const Span& span : node->spans) {
      if (!span.is_in_way_of(who)) continue;
      if (span.begin > after && (!first || span.begin < *first)) first = span.begin;
    }
  }
  return first;
}

NodeSet NodeCalendar::claimed_from(const Who& who, base::Instant end) const {
  NodeSet claimed = cluster_.no_nodes();
  for (const Kept& node : nodes_) {
    const bool is_claimed = std::ranges::any_of(node.spans, [&](const Span& span) {
      return span.claimant && span.begin < end && span.is_in_way_of(who);
    });
    if (is_claimed) claimed.set(node.rank);
  }
  return claimed;
}

// Before all instants: the first at() brings in what is in the way at its start.
void NodeCalendar::Sweep::begin(const Who& who, const NodeSet& nodes, base::Duration length) {
  who_ = who;
  nodes_ = free_ = nodes;
  length_ = length;
  marked_ = NodeSet{nodes.size()};
  count_ = nodes.count();
  marked_count_ = 0;
  blocked_.assign(calendar_.nodes_.size(), 0);
  last_ = base::Instant::min();
  entered_ = left_ = 0;
}

// blocked_ says about each node how many of its entries in the way overlap [start, start + length]:
// those that have entered and not left. A node is free while that is 0. As the start only moves on,
// each entry enters once and leaves once, so a sweep over all starts costs as much as one look at
// every entry. Entries leave in the order of their ends and enter in the order of their begins;
// one that ends before it has entered does neither.
const NodeSet& NodeCalendar::Sweep::at(base::Instant start) {
  for (; left_ < calendar_.by_end_.size() && calendar_.by_end_[left_].end <= start; ++left_) {
    const Entry& entry = calendar_.by_end_[left_];
    if (entry.begin > last_ || !entry.is_in_way_of(who_)) continue;
    for (std::size_t i = entry.places_begin; i < entry.places_end; ++i) {
      const auto place = static_cast<std::size_t>(calendar_.places_[i]);
      // Counted, because several entries of one node may be in the way of a long job.
      if (--blocked_[place] != 0) continue;
      const int rank = calendar_.nodes_[place].rank;
      if (!nodes_.test(rank)) continue;
      free_.set(rank);
      ++count_;
      if (marked_.test(rank)) ++marked_count_;
    }
  }
  last_ = start + length_;
  for (; entered_ < calendar_.by_begin_.size() && calendar_.by_begin_[entered_].begin <= last_;
       ++entered_) {
    const Entry& entry = calendar_.by_begin_[entered_];
    if (entry.end <= start || !entry.is_in_way_of(who_)) continue;
    for (std::size_t i = entry.places_begin; i < entry.places_end; ++i) {
      const auto place = static_cast<std::size_t>(calendar_.places_[i]);
      if (blocked_[place]++ != 0) continue;
      const int rank = calendar_.nodes_[place].rank;
      if (!nodes_.test(rank)) continue;
      free_.reset(rank);
      --count_;
      if (marked_.test(rank)) --marked_count_;
    }
  }
  return free_;
}

// Entries that ended by the last start have left, so the next in the order of ends is the first
// after it. It need not be of nodes in question; then the caller finds no more nodes there and asks
// again.
std::optional<base::Instant> NodeCalendar::Sweep::next_free() const {
  if (left_ == calendar_.by_end_.size()) return std::nullopt;
  const base::Instant end = calendar_.by_end_[left_].end;
  if (end >= calendar_.window_end_) return std::nullopt;
  return end;
}

}  // namespace sched
