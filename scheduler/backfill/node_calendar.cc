#include "scheduler/backfill/node_calendar.h"

#include <algorithm>
#include <utility>

#include "scheduler/limits/time_limits.h"
#include "scheduler/model/allocation_nodes.h"

namespace sched {

NodeCalendar::NodeCalendar(const Cluster& cluster, const JobBooks& books, base::Instant window_end)
    : cluster_{cluster},
      books_{books},
      window_end_{window_end},
      of_node_(static_cast<std::size_t>(cluster.node_count())) {}

// An entry is noted for four questions: by node (is it kept then?), in the order of begins and of
// ends (a sweep meets them as its start moves on), and as instants at which something changes.
// Those are Slurm's slots, which know of promises alone. The end of the window is not a change: the
// last slot ends there.
void NodeCalendar::add(const NodeSet& nodes, Entry entry) {
  entry.end = std::min(entry.end, window_end_);
  if (entry.begin >= entry.end) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    entry.ranks.push_back(rank);
  }
  const Entry& added = all_.emplace_back(std::move(entry));
  for (const int rank : added.ranks) of_node_[static_cast<std::size_t>(rank)].push_back(&added);
  const auto insert = [&](Entries& order, base::Instant Entry::*key) {
    const auto of = [&](const Entry* each) { return each->*key; };
    order.insert(std::ranges::upper_bound(order, added.*key, {}, of), &added);
  };
  insert(by_begin_, &Entry::begin);
  insert(by_end_, &Entry::end);
  if (added.claimant) return;
  changes_.insert(added.begin);
  if (added.end < window_end_) changes_.insert(added.end);
}

void NodeCalendar::read_claims(base::Instant now) {
  const auto is_claim = [](const Entry* entry) { return entry->claimant.has_value(); };
  if (std::ranges::any_of(by_end_, is_claim)) {
    std::erase_if(by_begin_, is_claim);
    std::erase_if(by_end_, is_claim);
    for (Entries& node : of_node_) std::erase_if(node, is_claim);
    std::erase_if(all_, [&](const Entry& entry) { return is_claim(&entry); });
  }
  for (const JobId id : books_.claimants()) enter_claim(*books_.find(id), now);
}

// A claim has one tier, though the preemptor may wait in several partitions: the highest, since it
// may start in that partition.
//
// The nodes of a preemptor's claim come free one after the other, and it starts with the last of
// them. Until its victims are gone the others are for jobs that are over by then. A job that its
// user has resumed waits on its nodes for the ends of any jobs, so nothing says when it ends.
void NodeCalendar::enter_claim(const Job& claimant, base::Instant now) {
  Entry claim{.begin = now, .end = window_end_, .claimant = Who{.job = claimant.id, .tier = 0}};
  int& tier = claim.claimant->tier;
  const NodeSet nodes = ranks_of(cluster_, *claimant.claim);
  if (claimant.allocated()) {
    tier = cluster_.partition(*claimant.partition).tier();
    return add(nodes, claim);
  }
  std::optional<base::Duration> limit = base::Duration{0};
  for (const QueueRecord& record : claimant.queued.in) {
    tier = std::max(tier, cluster_.partition(record.partition).tier());
    const auto there = TimeLimits::limit_of(cluster_, claimant, record.partition, now);
    limit = limit && there ? std::max(limit, there) : std::nullopt;
  }
  const base::Instant gone = victims_end(claimant);
  // Victims that resist are late.
  if (limit && *limit < window_end_ - std::max(gone, now)) claim.end = std::max(gone, now) + *limit;
  const NodeSet at_once = with_victims(claimant);
  add(at_once, claim);
  claim.begin = gone + base::Duration{1};  // a job that ends just then is over in time
  add(nodes - at_once, claim);
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

// Calls visit(entry) for each entry of these nodes that is in the way.
template <typename Visit>
void NodeCalendar::for_each_in_way(const std::optional<Who>& who, const NodeSet& nodes,
                                   const Visit& visit) const {
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    for (const Entry* const entry : of_node_[static_cast<std::size_t>(rank)]) {
      if (entry->is_in_way_of(who)) visit(*entry);
    }
  }
}

// Half-open intervals: an entry that begins when another ends does not overlap it.
bool NodeCalendar::kept_from(const std::optional<Who>& who, const NodeSet& nodes,
                             base::Instant begin, base::Instant end) const {
  bool is_kept = false;
  for_each_in_way(who, nodes, [&](const Entry& entry) {
    is_kept = is_kept || (entry.end > begin && entry.begin < end);
  });
  return is_kept;
}

std::optional<base::Instant> NodeCalendar::next_kept_from(const Who& who, const NodeSet& nodes,
                                                          base::Instant after) const {
  std::optional<base::Instant> first;
  for_each_in_way(who, nodes, [&](const Entry& entry) {
    if (entry.begin > after && (!first || entry.begin < *first)) first = entry.begin;
  });
  return first;
}

std::optional<base::Instant> NodeCalendar::kept_until(const Who& who, const NodeSet& nodes) const {
  std::optional<base::Instant> last;
  for_each_in_way(who, nodes,
                  [&](const Entry& entry) { last = std::max(last, std::optional{entry.end}); });
  return last;
}

NodeSet NodeCalendar::claimed_from(const Who& who, base::Instant end) const {
  NodeSet claimed = cluster_.no_nodes();
  for (const Entry* const entry : by_begin_) {
    if (entry->begin >= end) break;
    if (!entry->claimant || !entry->is_in_way_of(who)) continue;
    for (const int rank : entry->ranks) claimed.set(rank);
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
  blocked_.assign(calendar_.of_node_.size(), 0);
  last_ = base::Instant::min();
  entered_ = left_ = 0;
}

// blocked_ says about each node how many of its entries in the way overlap [start, start + length]:
// those that have entered and not left. A node is free while that is 0. As the start only moves on,
// each entry enters once and leaves once, so a sweep over all starts costs as much as one look at
// every entry. Entries leave in the order of their ends and enter in the order of their begins;
// one that ends before it has entered does neither.
const NodeSet& NodeCalendar::Sweep::at(base::Instant start) {
  const auto show = [&](int rank, bool is_free) {
    if (!nodes_.test(rank)) return;
    free_.assign(rank, is_free);
    count_ += is_free ? 1 : -1;
    if (marked_.test(rank)) marked_count_ += is_free ? 1 : -1;
  };
  for (; left_ < calendar_.by_end_.size() && calendar_.by_end_[left_]->end <= start; ++left_) {
    const Entry& entry = *calendar_.by_end_[left_];
    if (entry.begin > last_ || !entry.is_in_way_of(who_)) continue;
    for (const int rank : entry.ranks) {
      // Counted, because several entries of one node may be in the way of a long job.
      if (--blocked_[static_cast<std::size_t>(rank)] == 0) show(rank, true);
    }
  }
  last_ = start + length_;
  for (; entered_ < calendar_.by_begin_.size() && calendar_.by_begin_[entered_]->begin <= last_;
       ++entered_) {
    const Entry& entry = *calendar_.by_begin_[entered_];
    if (entry.end <= start || !entry.is_in_way_of(who_)) continue;
    for (const int rank : entry.ranks) {
      if (blocked_[static_cast<std::size_t>(rank)]++ == 0) show(rank, false);
    }
  }
  return free_;
}

// Entries that ended by the last start have left, so the next in the order of ends is the first
// after it. It need not be of nodes in question; then the caller finds no more nodes there and asks
// again.
std::optional<base::Instant> NodeCalendar::Sweep::next_free() const {
  if (left_ == calendar_.by_end_.size()) return std::nullopt;
  const base::Instant end = calendar_.by_end_[left_]->end;
  if (end >= calendar_.window_end_) return std::nullopt;
  return end;
}

}  // namespace sched
