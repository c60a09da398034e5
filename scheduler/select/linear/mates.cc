#include "scheduler/select/linear/mates.h"

#include <algorithm>

#include "scheduler/model/allocation_nodes.h"

namespace sched::linear {

// Notes that `to` jobs run on one of the mate's nodes, and no longer `from`.
void Mates::move(Mate& mate, std::size_t from, std::size_t to) {
  if (mate.nodes_with.size() <= to) mate.nodes_with.resize(to + 1);
  --mate.nodes_with[from];
  ++mate.nodes_with[to];
  std::size_t level = std::max(mate.level, to);
  while (mate.nodes_with[level] == 0) --level;
  if (level == mate.level) return;
  Levels& levels = *mate.levels;
  if (levels.size() <= level) levels.resize(level + 1);
  levels[mate.level].erase(mate.job->table_order);
  levels[level].emplace(mate.job->table_order, mate.job);
  mate.level = level;
}

// Those that are there already first, then the job itself.
void Mates::add(const SelectJob& job, const NodeBooks& books) {
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    const auto running = static_cast<std::size_t>(books.running(rank));
    for (Mate* const mate : on_[static_cast<std::size_t>(rank)]) move(*mate, running - 1, running);
  });
  if (!job.may_stack) return;
  const auto size = static_cast<int>(job.allocation->nodes.size());
  Mate& mate = mates_[job.table_order];
  mate = {.job = &job, .levels = &by_size_[{size, job.request->contiguous}], .nodes_with = {0}};
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    const auto running = static_cast<std::size_t>(books.running(rank));
    if (mate.nodes_with.size() <= running) mate.nodes_with.resize(running + 1);
    ++mate.nodes_with[running];
    mate.level = std::max(mate.level, running);
    on_[static_cast<std::size_t>(rank)].push_back(&mate);
  });
  if (mate.levels->size() <= mate.level) mate.levels->resize(mate.level + 1);
  (*mate.levels)[mate.level].emplace(job.table_order, &job);
}

// Goes in the opposite order of add().
void Mates::remove(const SelectJob& job, const NodeBooks& books) {
  if (const auto found = mates_.find(job.table_order); found != mates_.end()) {
    Mate& mate = found->second;
    (*mate.levels)[mate.level].erase(job.table_order);
    for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
      std::erase(on_[static_cast<std::size_t>(rank)], &mate);
    });
    mates_.erase(found);
  }
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    const auto running = static_cast<std::size_t>(books.running(rank));
    for (Mate* const mate : on_[static_cast<std::size_t>(rank)]) move(*mate, running + 1, running);
  });
}

}  // namespace sched::linear
