// Ends: which allocated job is expected to end when, in their order, and what each gives back. Jobs
// that are completing have given their cores back already and are not among them.
//
// They are read from the allocated jobs when they are first asked for after a change.
//
// Threads: none. Cost: read() O(allocated jobs × log); add() O(ends) in moves; expected_end() and
// guess() O(1), and where jobs take turns what Turns::expected_end() costs; find() O(ends);
// counts_cores() O(partitions).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/cluster.h"

namespace sched {

// The time of a job without a time limit, and the least time that can be told apart.
inline constexpr base::Duration kUnlimitedTime = std::chrono::hours{365 * 24};
inline constexpr base::Duration kShortestTime = std::chrono::seconds{1};

class Ends {
 public:
  struct End {
    base::Instant at;
    std::int64_t order;  // the job's, in the job table
    const Job* job;      // not to be looked at once it has moved: it may be gone
    // The node of a job on one node, and what it gives back there, so that the job need not be
    // fetched from memory for it; -1 = its allocation tells.
    int rank = -1;
    CoresAndMemory freed{};
  };

  // The arguments must outlive this object.
  Ends(const Cluster& cluster, const JobBooks& books, gang::Turns& turns)
      : cluster_{cluster}, books_{books}, turns_{turns} {}

  // Ends are expected and guessed as of this instant. Returns false if those that were read before
  // may be others now: then the caller must forget().
  bool go_to(base::Instant now);
  base::Instant now() const { return now_; }
  // Makes the next read() look at the books.
  void forget() { is_read_ = false; }
  void read();
  // The job has just started; its end is put into the order, instead of reading all of them again
  // for each job that a pass starts. Returns false if the caller must forget().
  bool add(const Job& job);

  // --- REQUIRES: read() ---
  // In their order; those that end together in the order of the job table. Valid until they are
  // read again, or one is added.
  const std::vector<End>& all() const { return ends_; }
  // Returns when the job ends; later than now, also of one that should have ended already (R8.3).
  base::Instant guess(const End& end) const { return end.at > now_ ? end.at : guess_overdue(end); }
  // Returns when the first `gone` of them have ended: now, if none need to.
  base::Instant after(std::size_t gone) const { return gone == 0 ? now_ : guess(ends_[gone - 1]); }
  // Returns the job's place in their order; nullopt if it has none.
  std::optional<std::size_t> find(const Job& job) const;
  // Calls visit(rank, freed) for each node that the job leaves, with what it gives back.
  template <typename Visit>
  void for_each_node(const End& end, const Visit& visit) const {
    if (end.rank >= 0) return visit(end.rank, end.freed);
    for_each_rank(cluster_, end.job->allocation, [&](int rank, const NodeAllocation& use) {
      visit(rank, freed_on(*end.job, use));
    });
  }

  // --- whether they are read or not ---
  // A job's expected end: start + time limit, a year if it has none (8.1). Time that it does not
  // run while others have their turn is added as far as it is known.
  base::Instant expected_end(const Job& job) const;
  // Returns the same as guess(End) of an allocated job that is not completing.
  base::Instant guess(const Job& job) const {
    return guess({.at = expected_end(job), .order = job.table_order, .job = &job});
  }
  // Returns true if no two jobs share a core, so that the free cores of a node are its cores
  // without those of its jobs.
  bool counts_cores() const;

 private:
  static CoresAndMemory freed_on(const Job& job, const NodeAllocation& use);
  base::Instant guess_overdue(const End& end) const;
  End end_of(const Job& job) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  gang::Turns& turns_;
  base::Instant now_{};
  bool is_read_ = false;             // ends_ are as of now_ and of the books
  std::uint64_t books_version_ = 0;  // that they are of; 0 = of none yet
  std::vector<End> ends_;
};

}  // namespace sched
