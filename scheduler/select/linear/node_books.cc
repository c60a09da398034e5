#include "scheduler/select/linear/node_books.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched::linear {
namespace {

// Returns MiB by rank.
std::vector<std::int64_t> memory_of(const Cluster& cluster) {
  std::vector<std::int64_t> memory;
  memory.reserve(static_cast<std::size_t>(cluster.node_count()));
  for (const NodeIndex node : cluster.order()) {
    memory.push_back(cluster.node(node).memory.value());
  }
  return memory;
}

}  // namespace

NodeBooks::NodeBooks(const Cluster& cluster)
    : cluster_{cluster},
      nodes_(static_cast<std::size_t>(cluster.node_count())),
      memory_{memory_of(cluster)},
      devices_{cluster},
      empty_{NodeSet::all(cluster.node_count())} {}

// A job refuses to be stacked if it was started so (SelectJob::may_stack), so that a changed
// partition does not unbalance the books.
void NodeBooks::count_running(const SelectJob& job, int delta) {
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    Node& node = nodes_[index(rank)];
    const std::size_t before = first_level(node);
    node.running += delta;
    if (!job.may_stack) node.exclusive += delta;
    stopped_ -= delta;
    if (!levels_.empty()) change_levels(rank, before, first_level(node));
  });
}

// Levels that no question has been about yet are worked out from the nodes.
const NodeBooks::Level& NodeBooks::level(int most) const {
  while (levels_.size() <= index(most)) {
    Level level{.nodes = cluster_.no_nodes()};
    for (int rank = 0; rank < cluster_.node_count(); ++rank) {
      if (first_level(nodes_[index(rank)]) > levels_.size()) continue;
      level.nodes.set(rank);
      ++level.count;
    }
    levels_.push_back(std::move(level));
  }
  return levels_[index(most)];
}

// A node is in all levels from one on.
void NodeBooks::change_levels(int rank, std::size_t before, std::size_t now) {
  before = std::min(before, levels_.size());
  now = std::min(now, levels_.size());
  for (std::size_t i = std::min(before, now); i < std::max(before, now); ++i) {
    levels_[i].nodes.assign(rank, now < before);
    levels_[i].count += now < before ? 1 : -1;
  }
}

// A job is present while it runs or is suspended, by gang or by its user: it keeps its memory and
// its devices, and counts against the total limit of 4.4.2. The run limit is count_running()'s.
void NodeBooks::count_presence(const SelectJob& job, int delta) {
  devices_.hold(*job.allocation, delta);
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation& use) {
    Node& node = nodes_[index(rank)];
    node.total += delta;
    stopped_ += delta;
    memory_.hold(rank, delta * use.memory.value());
    if (memory_.held(rank) < 0) memory_.set_held(rank, 0);  // P5 alone brings that about
    empty_.assign(rank, node.total == 0);
    // A lower bound of the first empty node, so that a search does not pass over the full ones each
    // time.
    if (node.total == 0) first_empty_ = std::min(first_empty_, rank);
  });
}

// Slurm's defect: under CR_Memory a suspension gives back all memory of the job's nodes, and not
// what the job was charged (P5). A quirk.
bool NodeBooks::has_p5() const {
  return cluster_.parameters().quirks.suspension_frees_memory && cluster_.parameters().memory;
}

// Down to 0 and not below, so what was given back and what a later resume takes may differ: the
// books drift, as Slurm's do.
void NodeBooks::give_memory_of_nodes(const SelectJob& job) {
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    memory_.set_held(rank, std::max<std::int64_t>(0, memory_.held(rank) - memory_.capacity(rank)));
  });
}

void NodeBooks::stop(const SelectJob& job) {
  count_running(job, -1);
  if (has_p5()) give_memory_of_nodes(job);
}

// Undoes stop().
void NodeBooks::go_on(const SelectJob& job) {
  count_running(job, +1);
  if (!has_p5()) return;
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    memory_.hold(rank, memory_.capacity(rank));
  });
}

// Returns true if the node, were it empty, had the memory. Jobs there are not looked at: the
// question is only asked about nodes without jobs.
bool NodeBooks::is_roomy(const CountedDemand& demand, int rank) const {
  const std::int64_t capacity = memory_.capacity(rank);
  return demand.charge(cluster_.spec_at(rank).cpus, capacity) <= capacity;
}

// Jobs do not change which nodes have that much memory, so one set serves all jobs that ask for as
// much. With empty() it tells where a job fits without a look at the books of any node.
const NodeSet& NodeBooks::roomy(const CountedDemand& demand) const {
  const auto known = std::ranges::find(roomy_, demand, &Roomy::demand);
  if (known != roomy_.end()) return known->nodes;
  // The last few demands: jobs of a queue ask for few different amounts of memory.
  if (roomy_.size() == kRoomyMax) roomy_.erase(roomy_.begin());
  Roomy& made = roomy_.emplace_back(Roomy{demand, cluster_.no_nodes()});
  for (int rank = 0; rank < cluster_.node_count(); ++rank) {
    if (is_roomy(demand, rank)) made.nodes.set(rank);
  }
  return made.nodes;
}

void NodeBooks::node_changed(int rank) {
  memory_.set_capacity(rank, cluster_.spec_at(rank).memory.value());
  // Memory changes in Kubernetes with other pods, so the sets are mended and not forgotten.
  for (Roomy& known : roomy_) known.nodes.assign(rank, is_roomy(known.demand, rank));
}

// `first_empty_` moves up here, when a node has filled, and down in count_presence().
void NodeBooks::add(const SelectJob& job) {
  count_presence(job, +1);
  const int after_first = empty_.next(first_empty_);
  first_empty_ = after_first < 0 ? empty_.size() : after_first;
  if (!job.user_suspended) count_running(job, +1);
}

void NodeBooks::remove(const SelectJob& job) {
  if (!job.user_suspended) count_running(job, -1);
  count_presence(job, -1);
}

// 7.6.1 step 1: a victim that ends leaves nothing; one that is suspended keeps its memory and
// counts as present, but does not run. As recorded, its nodes then have all their memory (P5).
void NodeBooks::Trial::remove(const SelectJob& job, Keep keep) {
  removed_.push_back({&job, keep, {}});
  if (books_.has_p5()) {
    for_each_rank(books_.cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
      removed_.back().held.push_back(books_.memory_.held(rank));
    });
  }
  if (!job.user_suspended) books_.count_running(job, -1);
  if (keep == Keep::kNothing) {
    books_.count_presence(job, -1);
  } else if (books_.has_p5()) {
    books_.give_memory_of_nodes(job);
  }
}

// The removals are undone in reverse, one by one, and never by a copy of the books: a trial costs
// the nodes of the jobs that it removes. With P5 the memory before is put back as it was, since it
// cannot be worked out.
bool NodeBooks::Trial::put_back() {
  const Removed removed = std::move(removed_.back());
  removed_.pop_back();
  if (!removed.job->user_suspended) books_.count_running(*removed.job, +1);
  if (removed.keep == Keep::kNothing) books_.count_presence(*removed.job, +1);
  std::size_t node = 0;
  for_each_rank(books_.cluster_, *removed.job->allocation, [&](int rank, const NodeAllocation&) {
    if (node < removed.held.size()) books_.memory_.set_held(rank, removed.held[node++]);
  });
  return true;
}

// However the question ends, the books are as they were before it.
NodeBooks::Trial::~Trial() {
  while (!removed_.empty()) put_back();
}

}  // namespace sched::linear
