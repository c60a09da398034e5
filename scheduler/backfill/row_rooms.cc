#include "scheduler/backfill/row_rooms.h"

#include <algorithm>
#include <utility>

namespace sched {

bool RowRooms::knows() const {
  const ClusterParameters& parameters = cluster_.parameters();
  return parameters.select == SelectType::kConsTres && !parameters.quirks.any();
}

RowRooms::OfPartition& RowRooms::of(PartitionIndex partition) {
  const auto known = rooms_.find(partition);
  if (known != rooms_.end()) return known->second;
  OfPartition made{.room = RowRoom{cluster_, partition}, .least = {}};
  for (const auto& [order, job] : books_.allocated()) {
    if (!job->completing()) made.room.enter(*job);
  }
  return rooms_.emplace(partition, std::move(made)).first->second;
}

// All nodes of the partition first: that answer is kept for every job that needs as much, and if it
// is no, these nodes need not be looked at.
bool RowRooms::may_fit_now(const Asked& asked) {
  OfPartition& here = of(asked.partition);
  const auto [least, is_new] = here.least.try_emplace(asked.needs);
  if (is_new && here.room.may_fit(all_nodes(asked), asked.needs, 0)) least->second = 0;
  return least->second == 0 && here.room.may_fit(asked.nodes, asked.needs, 0);
}

// 0 is what may_fit_now() knows for all nodes; the job may still have failed on those in question,
// so it is 1 here.
std::size_t RowRooms::least_gone_in_partition(const Asked& asked) {
  OfPartition& here = of(asked.partition);
  std::optional<std::size_t>& least = here.least[asked.needs];
  if (!least) {
    const Asked on_all{asked.partition, all_nodes(asked), asked.needs};
    least = search(here.room, on_all, 1);
  }
  return std::max<std::size_t>(*least, 1);
}

// Ends are compared by when they are expected, so that a job which is overdue counts as gone by
// `until`, though it is guessed to stay longer. That makes the room larger, never smaller: it stays
// an upper bound.
std::size_t RowRooms::least_gone(const Asked& asked, std::size_t least,
                                 std::optional<base::Instant> until) {
  RowRoom& room = of(asked.partition).room;
  if (until) {
    // Mostly it does not fit by then, and when it does is of no use.
    const auto later = std::ranges::upper_bound(ends_.all(), *until, {}, &Ends::End::at);
    const auto by_then = static_cast<std::size_t>(later - ends_.all().begin());
    if (!may_fit(room, asked, by_then)) return by_then + 1;
  }
  return search(room, asked, least);
}

// The room learns who leaves as far as it is asked.
bool RowRooms::may_fit(RowRoom& room, const Asked& asked, std::size_t gone) const {
  while (room.gone_count() < gone) room.leave(*ends_.all()[room.gone_count()].job);
  return room.may_fit(asked.nodes, asked.needs, gone);
}

// The room only grows, so the number is found by halving; first by doubling, because it is mostly
// small. Returns the least number from `least` on with which the job may fit; one more than there
// are ends if there is none.
std::size_t RowRooms::search(RowRoom& room, const Asked& asked, std::size_t least) const {
  const std::size_t never = ends_.all().size() + 1;
  std::size_t enough = least;
  std::size_t step = 1;
  for (; enough < never && !may_fit(room, asked, enough); step *= 2) {
    least = enough + 1;
    enough = std::min(enough + step, never);
  }
  while (least < enough) {
    const std::size_t middle = least + (enough - least) / 2;
    if (may_fit(room, asked, middle)) {
      enough = middle;
    } else {
      least = middle + 1;
    }
  }
  return enough;
}

// A job of another partition, or one that its user has suspended, holds no cores in these rows. One
// that is only suspended keeps its memory.
bool RowRooms::counts(const Asked& asked, const Job& job, bool must_end) {
  return RowRoom::counts_cores(job, asked.partition) ||
         (must_end && asked.needs.each.memory.per != CountedPer::kNothing);
}

}  // namespace sched
