// Attempt: the sequence of tests by which select/cons_tres places one job on the cores as they are
// held now (4.5.2):
//
//   1  idle cores
//   2  what the job may take at all: without cores of higher tiers
//   3  of that, without cores of the same tier; and, as far as possible, without lower tiers'
//   4  a row of the job's own partition
//
// Test 0 (would it fit on an empty cluster?) is TEST_ONLY's question; it decides nothing here, as
// what fits in a later test fits there.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "scheduler/select/cheapest.h"
#include "scheduler/select/cons_tres/choose.h"
#include "scheduler/select/cons_tres/core_view.h"
#include "scheduler/select/cons_tres/device_limits.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/offer.h"
#include "scheduler/select/cons_tres/shape.h"
#include "scheduler/select/selector.h"

namespace sched::cons_tres {

// Offers that are kept between calls and brought up to date by what changed in between: a queue of
// equal jobs costs what they take, not what exists. Beyond kEntriesMax the one that was asked for
// longest ago goes.
class OfferMemo {
 public:
  enum class Kind : std::uint8_t { kEver, kIdle, kMayTake, kNoEqual, kRow };  // tests 0 to 4
  struct Key {
    Kind kind;
    int row_id = 0;  // of a row
    std::uint64_t configuration_version = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  explicit OfferMemo(Occupancy& occupancy) : occupancy_{occupancy} {
    occupancy.on_trial_end([this](std::size_t begin) { forget_since(begin); });
  }
  OfferMemo(const OfferMemo&) = delete;
  OfferMemo& operator=(const OfferMemo&) = delete;

  // `evaluate(rank)` = CPUs that the node offers; it may depend on nothing but the shape, the
  // occupancy and the configuration of this version.
  template <typename Evaluate>
  const Offer& get(const Key& key, const Shape& shape, const NodeSet& nodes,
                   const Evaluate& evaluate);

 private:
  struct Entry {
    Key key;
    Shape shape;
    NodeSet nodes;
    Offer offer;
    std::size_t seen;  // position in the occupancy's log
  };
  static constexpr std::size_t kEntriesMax = 24;

  void forget_since(std::size_t position);

  Occupancy& occupancy_;
  std::list<Entry> entries_;  // latest first
};

// A trial that began at this position of the log ends: the nodes that it touched are forgotten by
// what has seen them since.
inline void OfferMemo::forget_since(std::size_t position) {
  for (Entry& entry : entries_) {
    if (entry.seen <= position) continue;
    for (std::size_t i = position; i < entry.seen; ++i) {
      const int rank = occupancy_.touched(i);
      entry.nodes.reset(rank);
      entry.offer.set(rank, 0);
    }
    entry.seen = position;
  }
}

VictimCost victim_cost(const Cluster& cluster, const SelectJob& job);

struct AttemptOptions {
  bool takes_extra_row = false;  // a QOS preemption (7.6.3)
};

class Attempt {
 public:
  Attempt(const Cluster& cluster, Occupancy& occupancy, OfferMemo& memo,
          const SelectRequest& request, const Shape& shape)
      : cluster_{cluster},
        occupancy_{occupancy},
        memo_{memo},
        request_{request},
        any_required_{request.any_required && !request.required.empty()},
        shape_{shape} {}

  std::optional<Allocation> test_only();
  std::optional<Allocation> run(const AttemptOptions& options);
  // False: run() cannot succeed now. Cheap; true promises nothing.
  bool may_fit();
  // Returns true if run() looks at the allocated jobs one by one, and not only at what they hold.
  static bool looks_at_jobs(const Cluster& cluster);

 private:
  // The nodes that a test found, before cores are picked.
  struct Found {
    std::vector<Chosen> nodes;
    CoreView view;
  };
  // Returns true if the job may be on the node beside the jobs that are there (4.5.1).
  bool compatible(int rank) const;
  bool others_stack_here(int rank) const;

  int idle_cpus(int rank) const;
  int offered_cpus(int rank, const CoreView& view) const;
  // Without regard to devices.
  int free_cpus(int rank, const CoreView& view) const;
  // Returns what devices leave of these numbers of CPUs and cores.
  DeviceLimits device_limits_on(int rank, int cpus, int cores) const;
  DeviceLimits device_limits_on(int rank, const CoreView& view) const;
  int with_devices(int rank, int cpus, int cores) const {
    return shape_.kinds.empty() ? cpus : device_limits_on(rank, cpus, cores).cpus;
  }
  Offer offer_of(const CoreView& view) const;
  std::vector<Chosen> choose_from(const Offer& offer, const CoreView& view) const;

  std::optional<Found> find();
  std::optional<Found> test_same_tier(const CoreView& base);
  std::optional<Found> stack_on_cheapest(const CoreView& view);  // fewest victims (15.4)
  std::vector<const SelectJob*> lower_tier_jobs() const;
  std::optional<Found> test_rows(const CoreView& base);
  std::optional<Allocation> place(const Found& found) const;
  bool give_devices(Allocation& allocation) const;  // false: some, or memory for them, are short

  void prepare();
  const Offer& idle_offer();
  // Returns the offer of a view that follows from the key, the occupancy and the configuration.
  const Offer& view_offer(OfferMemo::Key key, const CoreView& view);
  template <typename Evaluate>
  const Offer& fresh_offer(const Evaluate& evaluate) {  // where the memo does not apply
    fresh_.emplace(occupancy_.node_count());
    for (int rank = request_.nodes.next(0); rank >= 0; rank = request_.nodes.next(rank + 1)) {
      fresh_->set(rank, evaluate(rank));
    }
    return *fresh_;
  }
  CoreView may_take() const;
  void collect_exempt();
  bool only_idle() const;
  int own_tier() const { return cluster_.partition(shape_.partition).tier(); }

  const Cluster& cluster_;
  Occupancy& occupancy_;
  OfferMemo& memo_;
  const SelectRequest& request_;
  const bool any_required_;
  const Shape& shape_;
  AttemptOptions options_;
  bool ignores_others_ = false;             // TEST_ONLY
  NodeSet usable_;                          // what is left of request_.nodes for tests 3 and 4
  std::vector<CoreSet> exempt_;             // by rank; empty when there is none
  std::vector<CoreSet> left_alone_;         // by rank; of stack_on_cheapest
  std::vector<PartitionIndex> partitions_;  // in use, highest tier first
  std::vector<PartitionIndex> multi_row_;   // others in which jobs are stacked
  bool prepared_ = false;
  std::optional<Offer> fresh_;
};

// 1. Find the entry of this key and shape, or make one. An entry that has not seen the forgotten
//    part of the log starts over.
// 2. Evaluate the nodes that were touched since it was last asked for.
// 3. Bring its set of nodes to the one asked for: nodes that left it offer 0, nodes that are new in
//    it are evaluated. Jobs of one shape may be tried on different nodes in turn, for example when
//    backfill leaves out promised ones.
template <typename Evaluate>
const Offer& OfferMemo::get(const Key& key, const Shape& shape, const NodeSet& nodes,
                            const Evaluate& evaluate) {
  auto entry = entries_.begin();
  while (entry != entries_.end() && !(entry->key == key && entry->shape == shape)) ++entry;
  if (entry != entries_.end() && entry->seen < occupancy_.log_begin()) {
    entries_.erase(entry);
    entry = entries_.end();
  }
  if (entry == entries_.end()) {
    if (entries_.size() == kEntriesMax) entries_.pop_back();
    entries_.push_front(
        Entry{key, shape, NodeSet{nodes.size()}, Offer{nodes.size()}, occupancy_.log_end()});
    entry = entries_.begin();
  } else if (entry != entries_.begin()) {
    entries_.splice(entries_.begin(), entries_, entry);
  }
  for (; entry->seen < occupancy_.log_end(); ++entry->seen) {
    const int rank = occupancy_.touched(entry->seen);
    if (entry->nodes.test(rank)) entry->offer.set(rank, evaluate(rank));
  }
  if (entry->nodes == nodes) return entry->offer;
  for (int rank = entry->nodes.next_outside(0, nodes); rank >= 0;
       rank = entry->nodes.next_outside(rank + 1, nodes)) {
    entry->offer.set(rank, 0);
  }
  for (int rank = nodes.next_outside(0, entry->nodes); rank >= 0;
       rank = nodes.next_outside(rank + 1, entry->nodes)) {
    entry->offer.set(rank, evaluate(rank));
  }
  entry->nodes = nodes;
  return entry->offer;
}

}  // namespace sched::cons_tres
