#include "scheduler/backfill/ripe_books.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched {

// The books must be right on the nodes in question alone: all jobs are gone there that end by the
// instant, and none that ends later. Elsewhere any jobs may be gone, since the selector is asked
// about these nodes alone. So a trial serves one question after the other as long as none of them
// goes back in time on a node of its own:
//
//   A ends on n1 at 10:00, B on n2 at 11:00. A question about n2 at 11:00 takes B away. One about
// n1 at 10:00 goes on from there and takes A away besides. One about n2 at 10:30 must begin again,
// because B, which is gone, is there until 11:00.
//
// In BackfillChurn removals take a third of the instructions that new trials would cost them
// (docs/design/performance.md).
// 1. The ripe nodes, and whether the trial of the question before will do.
// 2. What is left to be taken away, in the order of the job table.
RipeBooks::Then RipeBooks::with(const Ripening::Enough& ripe, Ripening& ripening,
                                const NodeSet& nodes) {
  chain_leaves(ripe.at);
  if (!find_ripe(ripe, ripening, nodes)) begin_trial();  // 1
  list_leaves(ripe.at);                                  // 2
  for (const Leave& leave : to_leave_) take_away(leave);
  return {books_.selector(), ripe_};
}

// All ends up to this instant, and maybe more, come to be in leaves_. `last_leave_` is where the
// chain of a node begins; each entry names the one before it. A job that is overdue is chained by
// its end but leaves at a later instant, which is guessed: along a chain the instants need not
// ascend.
void RipeBooks::chain_leaves(base::Instant until) {
  if (std::exchange(generation_, ends_.generation()) != ends_.generation()) {
    leaves_.clear();
    last_leave_.clear();
    chained_count_ = 0;
  }
  last_leave_.resize(static_cast<std::size_t>(cluster_.node_count()), -1);
  const std::vector<Ends::End>& ends = ends_.all();
  for (; chained_count_ < ends.size() && ends[chained_count_].at <= until; ++chained_count_) {
    const Ends::End& end = ends[chained_count_];
    const base::Instant at = ends_.guess(end);
    ends_.for_each_node(end, [&](int rank, const CoresAndMemory&) {
      std::ptrdiff_t& last = last_leave_[static_cast<std::size_t>(rank)];
      leaves_.push_back({at, end.order, end.job, last});
      last = static_cast<std::ptrdiff_t>(leaves_.size()) - 1;
    });
  }
}

// Returns true if no job is gone from the ripe nodes in question that ends later.
bool RipeBooks::find_ripe(const Ripening::Enough& ripe, Ripening& ripening,
                          const NodeSet& nodes) {
  ripe_ = cluster_.no_nodes();
  const auto node_count = static_cast<std::size_t>(cluster_.node_count());
  if (gone_on_.size() != node_count) {
    gone_on_.assign(node_count, {});
    gone_ranks_.clear();
  }
  bool goes_on = trial_ != nullptr;
  for (std::size_t i = 0; i < ripe.count; ++i) {
    const Ripening::Node* const node = ripening.node(i);
    if (node == nullptr || node->at > ripe.at) break;
    if (!nodes.test(node->rank)) continue;
    ripe_.set(node->rank);
    goes_on = goes_on && gone_on_[static_cast<std::size_t>(node->rank)].last <= ripe.at;
  }
  return goes_on;
}

void RipeBooks::begin_trial() {
  release();
  trial_ = books_.selector().begin_trial();
  gone_.clear();
  for (const int rank : gone_ranks_) gone_on_[static_cast<std::size_t>(rank)] = {};
  gone_ranks_.clear();
}

// Notes the rank when its node is touched first, so that a new trial clears the nodes that were
// touched and not all of a large cluster.
RipeBooks::Gone& RipeBooks::gone_on(int rank) {
  Gone& gone = gone_on_[static_cast<std::size_t>(rank)];
  if (gone.last == Gone{}.last && gone.whole == Gone{}.whole) gone_ranks_.push_back(rank);
  return gone;
}

// A node on which all ends by the instant are gone (`whole`) is passed over. `last` does not say
// that: a job on two nodes leaves both of them, also one that no question was about, where jobs
// that end earlier may still be.
void RipeBooks::list_leaves(base::Instant at) {
  to_leave_.clear();
  for (int rank = ripe_.next(0); rank >= 0; rank = ripe_.next(rank + 1)) {
    Gone& gone = gone_on(rank);
    if (std::exchange(gone.whole, std::max(gone.whole, at)) >= at) continue;
    for (std::ptrdiff_t last = last_leave_[static_cast<std::size_t>(rank)]; last >= 0;) {
      const Leave& leave = leaves_[static_cast<std::size_t>(last)];
      if (leave.at <= at) to_leave_.push_back(leave);
      last = leave.before;
    }
  }
  std::ranges::sort(to_leave_, {}, &Leave::order);
}

// A job may be on several of the nodes; it is taken away once, from all of its nodes.
void RipeBooks::take_away(const Leave& leave) {
  if (!gone_.insert(leave.order).second) return;
  trial_->remove(leave.job->select, Selector::Trial::Keep::kNothing);
  for_each_rank(cluster_, leave.job->allocation, [&](int rank, const NodeAllocation&) {
    Gone& gone = gone_on(rank);
    gone.last = std::max(gone.last, leave.at);
  });
}

}  // namespace sched
