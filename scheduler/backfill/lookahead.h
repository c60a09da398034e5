// Lookahead: when and where a waiting job could start, if the allocated jobs end when their time
// limits say (WILL_RUN: 3.8, R8.3). It asks the selector about books from which jobs are taken away
// in the order of their expected ends; nothing is changed.
//
// A question is answered so:
//   1. Does the job fit now?
//   2. Does it fit when the jobs that it may preempt are gone? That counts as now: the
//      caller that starts it begins their endings.
//   3. Take away the other jobs in the order of their ends. The start is the first end that is
//      enough; with Quirks::ends_come_in_batches the end of a batch of those that end close
//      together.
//
// The selector is asked rarely: what is open on the nodes is known for each number of ends
// (OpenRoom), and with less than the job needs it is refused. Where no two jobs share a core, and
// the job may preempt none, the room mostly says when it starts, and the selector only where.
//
// The lookahead is the order of these steps. The parts keep what these steps need; each reads those
// before it:
//   Ends           which job ends when, and what is free until then
//   JobNeeds       the least that a job needs of its nodes
//   VictimFinder   which jobs it may preempt
//   OpenRoom       when nodes have what is needed; one for all jobs that need the same
//   BooksWithout   the selector's books as they will be
// The ends are read only when a question needs them: if a stacked job can start now follows from
// the books alone.
//
// Threads: none. Cost: the first question after a change O(allocated jobs) in copies, O(log) for
// each job that moved, and where jobs take turns O(allocated jobs × log); will_run O(allocated jobs
// that end before the job's start) in additions, and the selector's for the few books that may hold
// the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/time.h"
#include "scheduler/backfill/books_without.h"
#include "scheduler/backfill/end_batches.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/backfill/open_room.h"
#include "scheduler/backfill/victims.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/place/placement.h"
#include "scheduler/place/sharing.h"

namespace sched {

class Lookahead {
 public:
  // The arguments must outlive this object.
  Lookahead(const Cluster& cluster, const NodeGroups& groups, JobBooks& books, gang::Turns& turns)
      : cluster_{cluster},
        books_{books},
        placement_{cluster, groups, books.usage(), books.allocated()},
        ends_{cluster, books, turns} {}

  // Sets how many of the nodes that ripen at one instant are asked about at first (1,000).
  void set_together_max(std::size_t nodes) { together_max_ = nodes; }

  // Questions until end() are as of this instant. REQUIRES: the books do not change, except after
  // release().
  void begin(base::Instant now);
  void end() { release(); }
  // The books are about to change. The next question sees how they are then, if one of these tells
  // what happened: this job has started; or anything else.
  void release() { books_without_.release(); }
  void started(const Job& job);
  void changed();

  struct Question {
    const Job& job;
    PartitionIndex partition;
    const NodeSet& nodes;  // that it may use
    bool now_only = false;
    // A start after this instant is of no use; nullopt = any is.
    std::optional<base::Instant> until;
    bool by_standing = false;  // VictimFinder::of()
    // It preempts no jobs for these; null = there are none.
    const NodeSet* claimed = nullptr;
    // The question of sched/builtin (8.3): no job is preempted, and the job shares its nodes as it
    // may, without a try to have them alone.
    bool estimates_only = false;
    // WillRunRequest: `nodes` are not narrowed by the partition or by what the job asks of a node.
    bool on_any_node = false;
  };
  struct Answer {
    enum class Kind { kStarts, kLater, kNever };  // kLater: after Question::until, or not now
    Kind kind = Kind::kNever;
    base::Instant start{};
    NodeSet nodes;
  };
  // REQUIRES: the job is pending.
  Answer will_run(const Question& question);

  // Returns how nodes ripen for a job that may preempt none, where cores can be counted; null for
  // others. Valid until the books change.
  OpenRoom* room(const Job& job, PartitionIndex partition);

  // Returns the nodes that a job may use: Placement::open_nodes().
  Placement& placement() { return placement_; }
  // Returns the end as of the instant of the last begin().
  base::Instant expected_end(const Job& job) const { return ends_.expected_end(job); }

 private:
  struct Search;

  bool counts_cores();
  OpenRoom* room_for(PartitionIndex partition, const NodeNeeds& needs, bool may_preempt);
  static std::optional<OpenRoom::Enough> enough_room(const Search& search, std::size_t most);
  Answer try_with(Search& search);
  Answer after_now(Search& search);
  Answer after_ends(const Search& search, std::size_t from);
  bool take_victims(Search& search);
  std::optional<Answer> ask(const Search& search, const OpenRoom::Enough& enough,
                            base::Instant start);
  std::optional<Answer> ask_selector(const Search& search, Chooser& books, const NodeSet& nodes,
                                     base::Instant start);
  bool has_room(const Search& search, const NodeAllocation& use, base::Instant start) const;
  bool is_gone_by(const Search& search, const Job& allocated, base::Instant start) const;

  const Cluster& cluster_;
  JobBooks& books_;
  Placement placement_;
  std::size_t together_max_ = 1000;
  JobNeeds needs_{cluster_};
  Ends ends_;
  VictimFinder victims_{cluster_, books_, ends_};
  // By the partition whose jobs are counted (nullopt = all jobs are), and what is needed.
  std::map<std::pair<std::optional<PartitionIndex>, NodeNeeds>, OpenRoom> rooms_;
  BooksWithout books_without_{cluster_, books_, ends_};
};

}  // namespace sched
