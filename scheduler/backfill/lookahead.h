// Lookahead: when and where a waiting job could start, if the allocated jobs end when their time
// limits say (WILL_RUN: 3.8, R8.3). It asks the selector about books from which jobs are taken away
// in the order of their expected ends; nothing is changed.
//
// A question is answered so:
//   1. Does the job fit now?
//   2. Does it fit when the jobs that it may preempt are gone? That counts as now: the
//      caller that starts it begins their endings.
//   3. Take away the other jobs in the order of their ends, in batches of those that end close
//      together (EndBatches), and ask after each batch. The start is the end of the batch, or,
//      unless Quirks::ends_come_in_batches, the first end in it that is enough.
//
// Where no two jobs share a core, and the job may preempt none, it is simpler: nodes are ripe when
// they have the cores and the memory that the job needs, so the start is known before the selector
// is asked where (Ripening).
//
// The lookahead is the order of these steps. The parts keep what these steps need; each reads those
// before it:
//   Ends           which job ends when, and what is free until then; kept from pass to pass
//   JobNeeds       the least that a job needs of its nodes
//   VictimFinder   which jobs it may preempt
//   Ripening       when nodes have what is needed; one for all jobs that need the same
//   RowRooms       what is known before the selector is asked: the most room that there may be
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
#include <string>

#include "base/time.h"
#include "scheduler/backfill/books_without.h"
#include "scheduler/backfill/end_batches.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/needs.h"
#include "scheduler/backfill/ripening.h"
#include "scheduler/backfill/row_rooms.h"
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

  // Returns true if starts of the job are worked out from the nodes that are ripe: cores can be
  // counted, the job may preempt none, and starts are exact.
  bool goes_by_ripening(const Job& job, PartitionIndex partition);
  // Returns how nodes ripen for such a job; null for others. Valid until the books change.
  Ripening* ripening(const Job& job, PartitionIndex partition);

  // Returns nodes of the partition that fit the job's shape and constraint, until the next call.
  const NodeSet& could_ever_use(const Job& job, PartitionIndex partition) {
    return placement_.could_ever_use(job, partition);
  }
  // Returns the end as of the instant of the last begin().
  base::Instant expected_end(const Job& job) const { return ends_.expected_end(job); }
  // Returns "", or how what is kept from pass to pass differs from a new reading; for tests.
  std::string check_invariants();

 private:
  struct Search;

  bool counts_ripe_nodes();
  Ripening& ripening_for(const NodeNeeds& needs);
  Answer try_with(Search& search);
  Answer when_ripe(Search& search);
  std::optional<Answer> ask_ripe(const Search& search, Ripening& ripening,
                                 const Ripening::Enough& ripe);
  Answer general(Search& search);
  Answer after_now(Search& search);
  Answer after_ends(Search& search, std::size_t from);
  Answer narrow(Search& search, const EndBatches::Batch& batch, std::optional<std::size_t> possible,
                Answer found);
  bool cut(const Search& search, EndBatches::Batch& batch) const;
  void bound_by_room(Search& search);
  void bound_by_ends(Search& search);
  bool is_in_vain(const Search& search) const;
  bool take_victims(Search& search);
  std::optional<Answer> ask(Search& search, std::size_t gone, base::Instant start);
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
  std::map<NodeNeeds, Ripening> ripenings_;
  std::uint64_t ripenings_generation_ = 0;  // of the ends, that ripenings_ are of
  RowRooms rooms_{cluster_, books_, ends_};
  BooksWithout books_without_{cluster_, books_, ends_};
};

}  // namespace sched
