// RipeBooks: the selector's books as they will be at an instant on the nodes that are ripe by then
// (Ripening). Only jobs on these nodes are taken away: in a large cluster most of those that end by
// then are elsewhere.
//
// A question goes on with the trial of the one before, because jobs that were taken away on other
// nodes do not matter to it. It begins again if a job is gone from its nodes that ends later than
// its instant. To list what is still to be taken away, the ends of a node are chained.
//
// Threads: none. Cost: with() O(nodes that are ripe by then + ends on those of them that were asked
// about for an earlier instant, or not at all), and Trial::remove() for the jobs that were not gone
// yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/ripening.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"
#include "scheduler/select/selector.h"

namespace sched {

class RipeBooks {
 public:
  // The arguments must outlive this object.
  RipeBooks(const Cluster& cluster, JobBooks& books, const Ends& ends)
      : cluster_{cluster}, books_{books}, ends_{ends} {}

  struct Then {
    Chooser& books;
    const NodeSet& nodes;
  };
  // Returns the books at an instant, and those of these nodes that are ripe by then and among the
  // first that are enough. Valid until the next call. REQUIRES: no trial but this object's own
  // lives.
  Then with(const Ripening::Enough& ripe, Ripening& ripening, const NodeSet& nodes);
  // The selector's books are the real ones again.
  void release() { trial_.reset(); }

 private:
  // A job leaves a node. Those of one node are chained, the last end first.
  struct Leave {
    base::Instant at;  // guessed
    std::int64_t order;
    const Job* job;
    std::ptrdiff_t before;  // in leaves_; -1 = none
  };
  struct Gone {
    base::Instant last = base::Instant::min();   // the last end that was taken away on the node
    base::Instant whole = base::Instant::min();  // all ends by then are
  };
  void chain_leaves(base::Instant until);
  bool find_ripe(const Ripening::Enough& ripe, Ripening& ripening, const NodeSet& nodes);
  void begin_trial();
  Gone& gone_on(int rank);
  void list_leaves(base::Instant at);
  void take_away(const Leave& leave);

  const Cluster& cluster_;
  JobBooks& books_;
  const Ends& ends_;
  // The leaves of the first chained_count_ ends, of this generation.
  std::vector<Leave> leaves_;
  std::vector<std::ptrdiff_t> last_leave_;  // by rank, in leaves_; -1 = none
  std::size_t chained_count_ = 0;
  std::uint64_t generation_ = 0;
  // The jobs and ends that were taken away: jobs by their order in the job table, ends by rank.
  std::unique_ptr<Selector::Trial> trial_;
  std::set<std::int64_t> gone_;
  std::vector<Gone> gone_on_;
  std::vector<int> gone_ranks_;  // whose gone_on_ is set
  NodeSet ripe_;                 // of the last question
  std::vector<Leave> to_leave_;  // by its instant, and not gone yet
};

}  // namespace sched
