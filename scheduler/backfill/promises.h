// Promises: which nodes are kept for which waiting jobs, from when to when (8.1). A promise is of
// whole nodes, whatever part of them its job needs (R8.1).
//
// Cost: add O(promises + nodes of the job); overlaps O(promises of these nodes); a Sweep as a whole
// O(nodes of all promises), however often its start moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Promises {
 public:
  // `window_end`: nothing is promised from then on.
  Promises(int node_count, base::Instant window_end);

  void add(const NodeSet& nodes, base::Instant begin, base::Instant end);
  // Returns true if one of the nodes is promised at an instant in [begin, end).
  bool overlaps(const NodeSet& nodes, base::Instant begin, base::Instant end) const;
  // Returns when the next promise of one of the nodes begins after this instant.
  std::optional<base::Instant> next_begin(const NodeSet& nodes, base::Instant after) const;
  // Returns how many instants at which the promised nodes change there are, as Slurm counts them
  // for bf_node_space_size.
  int changes() const { return static_cast<int>(changes_.size()) + 1; }

  // The nodes that are free of promises during [start, start + length], both ends included, while
  // the start moves on. No promise may be added meanwhile.
  class Sweep {
   public:
    explicit Sweep(const Promises& promises) : promises_{promises} {}
    // Out of these nodes, for a job of this length.
    void begin(const NodeSet& nodes, base::Duration length);
    // REQUIRES: begun, and not before the last one since.
    const NodeSet& at(base::Instant start);
    // Returns how many there are.
    int count() const { return count_; }
    // Returns when nodes come free of promises next after the last start, within the window.
    std::optional<base::Instant> next_free() const;
    // Marks a node, which need not be one of them. REQUIRES: once for each node.
    void mark(int rank) {
      marked_.set(rank);
      if (free_.test(rank)) ++marked_count_;
    }
    // Returns how many of them are marked.
    int marked_count() const { return marked_count_; }

   private:
    const Promises& promises_;
    base::Duration length_{};
    NodeSet nodes_, free_, marked_;
    int count_ = 0, marked_count_ = 0;
    std::vector<std::uint32_t> blocked_;  // by place: promises in the way
    base::Instant last_{};                // promises that begin by then have entered
    std::size_t entered_ = 0, left_ = 0;  // those of by_begin_ and by_end_ that are done with
  };

 private:
  struct Promise {
    base::Instant begin, end;
    std::size_t places_begin, places_end;  // in places_
  };
  struct Span {
    base::Instant begin, end;
  };
  // A node of which something is promised. They are few in a large cluster, so what is counted of
  // each of them in a sweep lies close together.
  struct Promised {
    int rank;
    std::vector<Span> spans;
  };
  // Null if nothing is promised of the node.
  const Promised* promised_at(int rank) const {
    const int place = place_of_[static_cast<std::size_t>(rank)];
    return place < 0 ? nullptr : &nodes_[static_cast<std::size_t>(place)];
  }

  const base::Instant window_end_;
  std::vector<Promise> by_begin_, by_end_;
  std::vector<int> places_;             // in nodes_, of the promises, one after the other
  std::vector<Promised> nodes_;         // in the order in which they were first promised
  std::vector<int> place_of_;           // in nodes_, by rank; -1 = not there
  std::vector<base::Instant> changes_;  // ascending, each once
};

}  // namespace sched
