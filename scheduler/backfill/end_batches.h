// EndBatches: the ends of the allocated jobs in batches of those that end close together, which is
// as often as the general search of the lookahead looks. The windows of the batches grow, so that
// a day takes a dozen of them; with select/linear each end is a batch.
//
// As recorded the windows are Slurm's: they are counted from the half minute of its clock in which
// the first job of all ends, and the end of a job is looked at only if the job before it was taken.
//
// Threads: none. Cost: O(ends that are passed).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/victims.h"
#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class EndBatches {
 public:
  struct Batch {
    std::size_t begin, end;  // of the ends
    base::Instant first;     // end in it that matters
    base::Instant next;      // end behind it, or where its window ends
  };
  // Takes the ends from `from` on that have nodes among these; without the victims (null = there
  // are none), which are gone from the beginning. The arguments must outlive this object. REQUIRES:
  // the ends are read.
  EndBatches(const Cluster& cluster, const Ends& ends, const NodeSet& nodes, const Victims* victims,
             std::size_t from);

  // Returns the next batch, or nullopt if no more jobs with nodes in question end. Calls
  // visit(index) for each end in it that matters, in their order.
  template <typename Visit>
  std::optional<Batch> next(const Visit& visit);

 private:
  base::Instant window_end(base::Instant first);
  void widen(base::Instant next);

  const Cluster& cluster_;
  const Ends& ends_;
  const NodeSet& nodes_;
  const Victims* const victims_;
  std::size_t from_;
  base::Duration window_;                       // of the next batch
  std::optional<base::Instant> windows_begin_;  // Slurm's; set by the first batch
};

template <typename Visit>
std::optional<EndBatches::Batch> EndBatches::next(const Visit& visit) {
  const bool single = cluster_.parameters().select == SelectType::kLinear;
  const bool exact = !cluster_.parameters().quirks.ends_come_in_batches;
  const std::vector<Ends::End>& ends = ends_.all();
  Batch batch{.begin = from_, .end = from_, .first = {}, .next = {}};
  std::optional<base::Instant> limit;
  std::size_t i = from_;
  for (bool follows = false; i < ends.size(); ++i) {
    if (victims_ != nullptr && victims_->contains(i)) continue;
    if (limit && (exact || follows) && ends[i].at > *limit) break;
    follows = has_node_in(cluster_, ends[i].job->allocation, nodes_);
    if (!follows) continue;
    if (!limit) {
      batch.first = ends[i].at;
      limit = window_end(batch.first);
    }
    batch.end = i + 1;
    visit(i);
    if (single) break;
  }
  if (!limit) return std::nullopt;
  batch.next = i < ends.size() ? ends[i].at : *limit;
  from_ = batch.end;
  widen(batch.next);
  return batch;
}

}  // namespace sched
