// NodeCalendar: which nodes are kept for whom, from when to when. Its entries are promises and
// claims.
//
// A promise is of nodes for a waiting job (8.1), which no other job may use in that time; of whole
// nodes, whatever part of them the job needs (R8.1).
//
// A claim is of a preemptor that waits for its victims (P14), or of a job that its user has resumed
// and that waits for room (T11). It is in the way of other jobs of its tier and below: of a
// preemptor's nodes those with victims at once, the others from when the victims are gone. A job of
// a higher tier might preempt the claimant. A preemptor's claim ends when the preemptor does.
//
// Cost: promise and read_claims O(entries + nodes of the job); kept_from and kept_until O(entries
// of these nodes); a Sweep as a whole O(nodes + nodes of all entries), however often its start
// moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
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
    add(nodes, {.begin = begin, .end = end});
  }
  // Enters the claims that there are now, and drops those that were entered before.
  void read_claims(base::Instant now);
  // Returns true if one of the nodes is kept for another job at an instant in [begin, end);
  // promised, if no job asks.
  bool kept_from(const std::optional<Who>& who, const NodeSet& nodes, base::Instant begin,
                 base::Instant end) const;
  // Returns when one of the nodes is next kept for another job after this instant.
  std::optional<base::Instant> next_kept_from(const Who& who, const NodeSet& nodes,
                                              base::Instant after) const;
  // Returns until when the last of these nodes is kept for another job; nullopt = none is.
  std::optional<base::Instant> kept_until(const Who& who, const NodeSet& nodes) const;
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
    std::vector<std::uint32_t> blocked_;  // by rank: entries in the way
    base::Instant last_{};                // entries that begin by then have entered
    std::size_t entered_ = 0, left_ = 0;  // those of by_begin_ and by_end_ that are done with
  };

 private:
  struct Entry {
    base::Instant begin, end;
    std::optional<Who> claimant{};  // nullopt = it is a promise
    std::vector<int> ranks{};

    // Promises are in the way of all jobs; nullopt asks about them alone.
    bool is_in_way_of(const std::optional<Who>& who) const {
      return !claimant || (who && who->job != claimant->job && who->tier <= claimant->tier);
    }
  };
  using Entries = std::vector<const Entry*>;
  void add(const NodeSet& nodes, Entry entry);
  template <typename Visit>
  void for_each_in_way(const std::optional<Who>& who, const NodeSet& nodes,
                       const Visit& visit) const;
  void enter_claim(const Job& claimant, base::Instant now);
  NodeSet with_victims(const Job& claimant) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  const base::Instant window_end_;
  std::list<Entry> all_;
  Entries by_begin_, by_end_;     // all of them in two orders
  std::vector<Entries> of_node_;  // by rank
  std::set<base::Instant> changes_;
};

}  // namespace sched
