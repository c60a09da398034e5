// NodeCalendar: which nodes are kept for whom, from when to when. Its entries are promises and
// claims.
//
// A promise is of nodes for a waiting job (8.1), which no other job may use in that time; of whole
// nodes, whatever part of them the job needs (R8.1).
//
// A claim is of a preemptor that waits for its victims (P14), or of a job that its user has resumed
// and that waits for room (T11). It is in the way of other jobs of its tier and below: of a
// preemptor's nodes those with victims at once, the others from when the victims are gone. A job of
// a higher tier might preempt the claimant.
//
// Cost: promise and read_claims O(entries + nodes of the job); promised and kept_from O(entries of
// these nodes); a Sweep as a whole O(nodes of all entries), however often its start moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class NodeCalendar {
 public:
  // The arguments must outlive this object. `window_end`: nothing is kept for anyone from then on.
  NodeCalendar(const Cluster& cluster, const JobBooks& books, base::Instant window_end);

  // A job, and the tier in which it asks, or the highest in which it waits with its claim.
  struct Who {
    JobId job;
    int tier;
  };
  void promise(const NodeSet& nodes, base::Instant begin, base::Instant end) {
    add(nodes, begin, end, std::nullopt);
  }
  // Enters the claims that there are now, and drops those that were entered before.
  void read_claims(base::Instant now);
  // Returns true if one of the nodes is promised at an instant in [begin, end).
  bool promised(const NodeSet& nodes, base::Instant begin, base::Instant end) const {
    return overlaps(nodes, begin, end, std::nullopt);
  }
  // Returns true if one of them is kept for another job then.
  bool kept_from(const Who& who, const NodeSet& nodes, base::Instant begin,
                 base::Instant end) const {
    return overlaps(nodes, begin, end, who);
  }
  // Returns when one of the nodes is next kept for another job after this instant.
  std::optional<base::Instant> next_kept_from(const Who& who, const NodeSet& nodes,
                                              base::Instant after) const;
  // Returns the nodes that others have claimed for an instant before `end`.
  NodeSet claimed_from(const Who& who, base::Instant end) const;
  // Returns when the victims of a preemptor with a claim are gone, unless they resist.
  base::Instant victims_end(const Job& claimant) const;
  // Returns how many instants at which the promised nodes change there are, as Slurm counts them
  // for bf_node_space_size.
  int changes() const { return static_cast<int>(changes_.size()) + 1; }

  // The nodes that are not kept for others during [start, start + length], both ends included,
  // while the start moves on. No entry may be added or dropped meanwhile.
  class Sweep {
   public:
    explicit Sweep(const NodeCalendar& calendar) : calendar_{calendar} {}
    // Out of these nodes, for a job of this length.
    void begin(const Who& who, const NodeSet& nodes, base::Duration length);
    // REQUIRES: begun, and not before the last one since.
    const NodeSet& at(base::Instant start);
    // Returns how many there are.
    int count() const { return count_; }
    // Returns when entries end next after the last start, within the window.
    std::optional<base::Instant> next_free() const;
    // Marks a node, which need not be one of them. REQUIRES: once for each node.
    void mark(int rank) {
      marked_.set(rank);
      if (free_.test(rank)) ++marked_count_;
    }
    // Returns how many of them are marked.
    int marked_count() const { return marked_count_; }

   private:
    const NodeCalendar& calendar_;
    Who who_{};
    base::Duration length_{};
    NodeSet nodes_, free_, marked_;
    int count_ = 0, marked_count_ = 0;
    std::vector<std::uint32_t> blocked_;  // by place: entries in the way
    base::Instant last_{};                // entries that begin by then have entered
    std::size_t entered_ = 0, left_ = 0;  // those of by_begin_ and by_end_ that are done with
  };

 private:
  struct Span {
    base::Instant begin, end;
    std::optional<Who> claimant;  // nullopt = it is a promise

    // Promises are in the way of all jobs; nullopt asks about them alone.
    bool is_in_way_of(const std::optional<Who>& who) const {
      return !claimant || (who && who->job != claimant->job && who->tier <= claimant->tier);
    }
  };
  struct Entry : Span {
    std::size_t places_begin, places_end;  // in places_
  };
  // A node that is kept for someone. They are few in a large cluster, so what is counted of
  // each of them in a sweep lies close together.
  struct Kept {
    int rank;
    std::vector<Span> spans;
  };
  void add(const NodeSet& nodes, base::Instant begin, base::Instant end,
           const std::optional<Who>& claimant);
  bool overlaps(const NodeSet& nodes, base::Instant begin, base::Instant end,
                const std::optional<Who>& who) const;
  // Null if the node is kept for no one.
  const Kept* kept_at(int rank) const {
    const int place = place_of_[static_cast<std::size_t>(rank)];
    return place < 0 ? nullptr : &nodes_[static_cast<std::size_t>(place)];
  }

  void enter_claim(const Job& claimant, base::Instant now);
  NodeSet with_victims(const Job& claimant) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  const base::Instant window_end_;
  std::vector<Entry> by_begin_, by_end_;
  std::vector<int> places_;             // in nodes_, of the entries, one after the other
  std::vector<Kept> nodes_;             // in the order in which they were first kept
  std::vector<int> place_of_;           // in nodes_, by rank; -1 = not there
  std::vector<base::Instant> changes_;  // ascending, each once
};

}  // namespace sched
