// Copies what another scheduler needs to go on from this instant (state_copy.h).
#include <algorithm>

#include "scheduler/engine/engine.h"

namespace sched {

// Copies clocks as of now, as the API server would have them.
StateCopy Engine::copy(base::Instant now) {
  settle();
  turns_->project();
  StateCopy copy{.now = std::max(now, now_)};
  copy.nodes.resize(static_cast<std::size_t>(cluster_.node_slots()));
  for (const NodeIndex node : cluster_.order()) copy.nodes[node.index()] = cluster_.node(node);
  for (int i = 0; i < cluster_.partition_slots(); ++i) {
    copy.partitions.push_back(cluster_.partition(PartitionIndex{i}).config.name);
  }
  const auto& table = books_.table().all();
  copy.jobs.reserve(table.size());
  for (const auto& [order, job] : table) {
    if (is_terminal(job->state)) continue;
    JobFacts& facts = copy.jobs.emplace_back(*job);
    facts.clock = {.run = turns_->run_time(*job, copy.now),
                   .suspended = turns_->suspend_time(*job, copy.now),
                   .as_of = copy.now};
  }
  copy.published = turns_->published();
  copy.usage = priorities_.save_usage();
  return copy;
}

}  // namespace sched
