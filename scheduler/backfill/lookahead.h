// Lookahead: when and where a waiting job could start, if the allocated jobs end when their time
// limits say (WILL_RUN: 3.8, R8.3). It asks the selector about books from which jobs are taken away
// in the order of their expected ends; nothing is changed.
//
// A question is answered so:
//   1. Does the job fit now?
//   2. Does it fit when the jobs that it may preempt are gone? That counts as now: the
//      caller that starts it begins their endings.
//   3. Take away the other jobs in the order of their ends, with select/linear one by one,
//   otherwise
//      in batches of those that end close together, and ask after each batch. The windows of the
//      batches grow, so that a day takes a dozen of them. The start is the end of the batch, or,
//      unless ClusterParameters::as_recorded, the first end in it that is enough.
//
// Where no two jobs share a core, and the job may preempt none, it is simpler: nodes are ripe when
// they have the cores and the memory that the job needs, so the start is known before the selector
// is asked where (Ripening).
//
// Between questions the books stay as the last one left them, with so many jobs taken away (a trial
// of the selector), and the next one moves on from there. Before it asks the selector it counts
// free cores, which is cheap, and refuses most of what cannot fit. Where jobs are stacked, so that
// cores cannot be counted, it asks for the most that there may be (RowRoom), and remembers what the
// selector has refused: a job of the same kind that needs no less (Question::Kind) does not fit
// there either.
//
// The order of the ends is kept from one pass to the next: what JobBooks::moves() names is looked
// at again. Only where jobs take turns it is made anew, since their ends follow from the turns; and
// only when a question needs it: if a stacked job can start now follows from the books alone.
//
// Threads: none. Cost: the first question after a change O(allocated jobs) in copies, O(log) for
// each job that moved, and where jobs take turns O(allocated jobs × log); will_run O(allocated jobs
// that end before the job's start) in additions, and the selector's for the few books that may hold
// the job.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/row_room.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/place/placement.h"
#include "scheduler/preempt/rules.h"
#include "scheduler/select/counted.h"
#include "scheduler/select/selector.h"

namespace sched {

// What a job without a time limit is reckoned with, and the least time that can be told apart.
inline constexpr base::Duration kUnlimitedTime = std::chrono::hours{365 * 24};
inline constexpr base::Duration kShortestTime = std::chrono::seconds{1};

class Lookahead {
 public:
  // The arguments must outlive this object.
  Lookahead(const Cluster& cluster, const NodeGroups& groups, JobBooks& books, gang::Turns& turns)
      : cluster_{cluster},
        books_{books},
        turns_{turns},
        placement_{cluster, groups, books.usage(), books.allocated()} {}

  // Of nodes that ripen at one instant so many are asked about at first (1,000).
  void set_together_max(std::size_t nodes) { together_max_ = nodes; }

  // Questions until end() are as of this instant. REQUIRES: the books do not change, except after
  // release().
  void begin(base::Instant now);
  void end();
  // The books are about to change. The next question sees how they are then, if one of these tells
  // what happened: this job has started; or anything else.
  void release();
  void started(const Job& job);
  void changed();

  struct Question {
    const Job& job;
    PartitionIndex partition;
    const NodeSet& nodes;  // that it may use
    bool now_only = false;
    // A start after this instant is of no use; nullopt = any is.
    std::optional<base::Instant> until;
    // Jobs of one kind ask for the same but for the size. One of them cannot start if another one
    // cannot that needs no more, on no fewer nodes. nullopt = nothing is known of other jobs.
    struct Kind {
      int number = 0;
      int nodes = 0;           // in all; more of them are no easier to find …
      std::int64_t tasks = 0;  // … with as many tasks on each, and more tasks neither
    };
    std::optional<Kind> kind{};
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

  // Of cores and memory (MiB): what is free on a node, or comes free.
  struct Free {
    int cores = 0;
    std::int64_t memory = 0;
    void add(const Free& more, int sign);
    friend bool operator==(const Free&, const Free&) = default;
  };
  // What a job needs on each of its nodes at least.
  struct Least {
    int cores = 0;  // 0 = all of the node's
    int cpus = 0;   // for which memory is charged; 0 = all of the node's
    CountedDemand memory{};
    friend auto operator<=>(const Least&, const Least&) = default;
  };
  // When each node alone has what the job needs on it at least, worked out as far as it is asked
  // for. Valid until the books change.
  class Ripening {
   public:
    struct Node {
      int rank;
      base::Instant at;
    };
    // A node that is ripe has so much more; at first all that is free there.
    struct Gain {
      int rank;
      Free more;
      base::Instant at;
      std::size_t ripe;  // so many nodes are, with this one
    };
    // `lookahead` has its ends and must outlive this.
    Ripening(const Lookahead& lookahead, const Least& least);
    // The node that is ripe as the index-th; null if no more nodes ever are. Valid until the next
    // call.
    const Node* node(std::size_t index) {
      while (index >= order_.size() && next_end_ < lookahead_.ends_.size()) add_end();
      return index < order_.size() ? &order_[index] : nullptr;
    }
    // Likewise.
    const Gain* gain(std::size_t index) {
      while (index >= gains_.size() && next_end_ < lookahead_.ends_.size()) add_end();
      return index < gains_.size() ? &gains_[index] : nullptr;
    }

   private:
    bool is_enough(int rank) const;
    void add_ripe(int rank, base::Instant at);
    void add_end();

    const Lookahead& lookahead_;
    const Least least_;
    std::vector<Free> free_;    // by rank; kRipe cores on a node that is in order_
    std::size_t next_end_ = 0;  // of ends_
    std::vector<Node> order_;
    std::vector<Gain> gains_;
  };
  // Null where cores cannot be counted, the job may preempt others, or starts are not exact.
  Ripening* ripening(const Job& job, PartitionIndex partition, bool may_preempt = true);

  // Nodes of the partition that fit the job's shape and constraint. Valid until the next call.
  const NodeSet& could_ever_use(const Job& job, PartitionIndex partition) {
    return placement_.could_ever_use(job, partition);
  }
  // A job's expected end: start + time limit, a year if it has none (8.1). Time that it does not
  // run while others have their turn is added as far as it is known.
  base::Instant expected_end(const Job& job);
  // Empty, or what is kept from pass to pass and is not what would be read anew; for tests.
  std::string check_invariants();

 private:
  struct End {
    base::Instant at;
    std::int64_t order;  // the job's, in the job table
    const Job* job;      // not to be looked at once it has moved: it may be gone
    // Of a job on one node, that node and what it gives back there, so that the job need not be
    // fetched from memory for it; -1 = its allocation tells.
    int rank = -1;
    Free freed{};
    bool is_victim = false;  // of the job in question
    bool must_end = false;   // as a victim: it is not only suspended
  };
  // A job leaves a node. Those of one node are chained, the last end first.
  struct Leave {
    base::Instant at;  // guess_end()
    std::int64_t order;
    const Job* job;
    std::ptrdiff_t before;  // in leaves_; -1 = none
  };
  struct Needs;
  // Free cores of each node, counted as jobs leave.
  struct Count;
  struct Search;

  void read_ends();
  void read_all_ends();
  void read_moved_ends();
  End end_of(const Job& job);
  void note_if_unsettled(const End& end);
  static bool ends_before(const End& a, const End& b);
  static Free freed_on(const Job& job, const NodeAllocation& use);
  void count_free(const Job& job, int sign);
  void recount_free(NodeIndex node);
  Answer try_with(const Question& question, const SharingStatus& sharing);
  Answer after_ends(Search& search, std::size_t from);
  bool may_preempt_any(const Job& job, PartitionIndex partition);
  Answer when_ripe(Search& search, Ripening& ripening);
  // So many of the nodes that are ripe by then have what the job needs at least.
  struct Enough {
    base::Instant at;
    std::size_t count;
  };
  Enough earliest(const Search& search, Ripening& ripening);
  std::optional<Answer> ask_ripe(const Search& search, Ripening& ripening, const Enough& ripe);
  void begin_ripe_trial();
  struct Gone;
  Gone& gone_on(int rank);
  void list_leaves(const NodeSet& nodes, base::Instant at);
  void take_away_ripe(const Leave& leave);
  bool is_gone_by(const Job& job, base::Instant start) const;
  bool has_room(const Job& job, const NodeAllocation& use, base::Instant start) const;
  std::optional<Answer> question_selector(const Search& search, Chooser& books,
                                          const NodeSet& nodes, base::Instant start);
  // The selector has refused jobs of the kind on these nodes with so many of ends_ gone, and fewer.
  struct Refusal {
    Question::Kind kind;
    bool may_stack;
    NodeSet nodes;
    std::size_t gone;
  };
  std::optional<std::size_t> refused_up_to(const Question& question,
                                           const SharingStatus& sharing) const;
  void note_refusal(const Search& search);
  struct Batch {
    std::size_t begin, end;                 // of ends_
    base::Instant first{};                  // end in it that matters
    base::Instant next{};                   // end behind it
    std::optional<std::size_t> possible{};  // by the count of cores, with so many jobs gone
  };
  Batch add_batch(Search& search, std::size_t from) const;
  bool cut(const Search& search, Batch& batch) const;
  void widen(Search& search, const Batch& batch) const;
  Answer narrow(Search& search, const Batch& batch, Answer found);
  std::optional<Answer> ask(Search& search, std::size_t gone, base::Instant start);
  RowRoom* room_in(PartitionIndex partition);  // null = nothing is known
  // Jobs that are gone from the beginning, and what they leave behind.
  using Victims = std::vector<std::pair<const SelectJob*, Selector::Trial::Keep>>;
  // The jobs that a job may preempt: in ends_, and if each must end and is not only suspended.
  struct Preempted {
    Victims jobs;
    std::vector<std::pair<std::size_t, bool>> ends;
    bool takes_extra_row = false;
  };
  void ask_room(Search& search);
  bool may_fit(const Search& search, const NodeSet& nodes, std::size_t gone);
  std::size_t least_gone(const Search& search, const NodeSet& nodes, std::size_t least);
  void find_least_gone(Search& search);
  bool is_in_vain(const Search& search) const;
  Preempted work_out_preempted(const Question& question);
  const Preempted& preempted_by(const Question& question);
  bool has_candidates(Search& search);
  void take_away(const Victims& victims, std::size_t count);
  Chooser& books_without(const Search& search, std::size_t count);
  base::Instant guess_end(const End& last) const;
  template <typename Visit>
  void for_each_node(const End& end, const Visit& visit) const;
  void note_leaves(base::Instant until);
  void forget_ripe();
  bool counts_cores() const;
  struct Hardware;
  const Hardware& hardware(PartitionIndex partition);

  const Cluster& cluster_;
  JobBooks& books_;
  gang::Turns& turns_;
  Placement placement_;
  std::size_t together_max_ = 1000;
  base::Instant now_{};
  bool has_ends_ = false;                 // ends_ are as of now_ and of the books
  std::uint64_t ends_version_ = 0;        // of the books, that ends_ are of
  std::uint64_t ends_configuration_ = 0;  // of the cluster, likewise
  bool counts_cores_ = false;
  std::vector<End> ends_;                // in their order
  std::vector<std::int64_t> unsettled_;  // jobs whose ends depend on now_
  // By rank, now. Of memory less than 0, what jobs hold: how much a node has changes with the pods
  // of others, and is looked up when it is needed.
  std::vector<Free> free_;
  std::map<Least, Ripening> ripenings_;
  std::vector<Leave> leaves_;            // of the first leaves_end_ of ends_
  std::size_t leaves_end_ = 0;
  std::vector<std::ptrdiff_t> last_leave_;  // by rank, in leaves_; -1 = none
  std::map<PartitionIndex, RowRoom> rooms_;  // of the allocated jobs
  // By partition and needs: how many of ends_ must be gone at least, whichever nodes are in
  // question. nullopt = more than none.
  std::map<std::pair<PartitionIndex, RowRoom::Needs>, std::optional<std::size_t>> floors_;
  std::vector<Refusal> refusals_;            // of these, and of ends_
  std::optional<std::vector<const Job*>> victim_kinds_;  // may_preempt_any()
  std::map<int, Preempted> preempted_;       // by kind; of jobs of none, the last one's: -1
  // The most that a node of the partition has.
  struct Hardware {
    int cpus = 0;
    int threads = 0;  // of a core; 0 = not known
  };
  std::vector<Hardware> hardware_;       // by PartitionIndex
  std::uint64_t hardware_version_ = 0;   // of the cluster's configuration
  NodeSet ripe_nodes_;                   // of the last question
  std::vector<Leave> gone_first_;        // jobs that have ended by its start
  std::unique_ptr<Selector::Trial> trial_;
  Victims gone_victims_;  // these are taken away in the trial …
  std::size_t gone_ = 0;  // … and so many of ends_
  // What questions without Ripening have been asked about: copies of the books without so many of
  // ends_, and of those without these victims besides.
  using Copies = std::map<std::size_t, std::unique_ptr<Chooser>>;
  Copies copies_, victim_copies_;
  Victims copies_victims_;
  // Or, in a trial of ask_ripe(), these jobs, by their order in the job table.
  bool is_ripe_trial_ = false;
  std::set<std::int64_t> ripe_gone_;
  struct Gone {
    base::Instant last = base::Instant::min();   // the last end that was taken away on the node
    base::Instant whole = base::Instant::min();  // all ends by then are
  };
  std::vector<Gone> gone_on_;    // by rank
  std::vector<int> gone_ranks_;  // whose gone_on_ is set
};

}  // namespace sched
