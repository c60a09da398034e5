#include "scheduler/select/cons_tres/occupancy.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/model/allocation_nodes.h"

namespace sched::cons_tres {

namespace {

// Returns by rank what the selector needs of each node's hardware, without its name and features.
std::vector<NodeFacts> all_facts(const Cluster& cluster) {
  std::vector<NodeFacts> facts;
  facts.reserve(static_cast<std::size_t>(cluster.node_count()));
  for (int rank = 0; rank < cluster.node_count(); ++rank) {
    facts.push_back(facts_of(cluster.node_at(rank), cluster.spec_at(rank)));
  }
  return facts;
}

std::vector<std::int64_t> memory_of(const std::vector<NodeFacts>& facts) {
  std::vector<std::int64_t> memory;
  memory.reserve(facts.size());
  for (const NodeFacts& node : facts) memory.push_back(node.memory_mib);
  return memory;
}

}  // namespace

// `weight_changes_` marks the ranks at which a run of neighbors of one weight ends (4.8).
Occupancy::Occupancy(const Cluster& cluster)
    : cluster_{cluster},
      facts_{all_facts(cluster)},
      nodes_(facts_.size()),
      memory_{memory_of(facts_)},
      devices_{cluster},
      weight_changes_{cluster.no_nodes()},
      rows_(static_cast<std::size_t>(cluster.partition_slots())) {
  for (int rank = 0; rank < node_count(); ++rank) {
    if (rank > 0 && facts(rank).weight != facts(rank - 1).weight) weight_changes_.set(rank);
    nodes_[index(rank)].idle_count = facts(rank).cores_count();
  }
  is_of_one_weight_ = weight_changes_.empty();
}

Occupancy::Occupancy(CopyOf copy)
    : cluster_{copy.books.cluster_},
      facts_{copy.books.facts_},
      nodes_{copy.books.nodes_},
      memory_{copy.books.memory_},
      devices_{copy.books.devices_},
      weight_changes_{copy.books.weight_changes_},
      is_of_one_weight_{copy.books.is_of_one_weight_},
      rows_(copy.books.rows_.size()) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!copy.books.rows_[i]) continue;
    const PartitionIndex partition{static_cast<std::int32_t>(i)};
    rows_[i] = copy.books.rows_[i]->packed_copy(rows_count(partition));
  }
}

// For questions that are asked after the trial has moved on: as many rows as the configuration
// says, without list of jobs, log or trial.
std::unique_ptr<Occupancy> Occupancy::packed_copy() {
  flush_rows();
  return std::unique_ptr<Occupancy>{new Occupancy{CopyOf{*this}}};
}

// R4.8: one row for each job that may be stacked, and under preempt/qos one more in every partition
// (R7.26).
int Occupancy::rows_count(PartitionIndex partition) const {
  return std::max(1, cluster_.partition(partition).max_share) + (has_extra_row() ? 1 : 0);
}

// A partition gets rows when a job first needs them, so unused partitions cost nothing. Their count
// follows the configuration of the moment.
PartitionRows& Occupancy::rows_for(PartitionIndex partition) {
  if (partition.index() >= rows_.size()) rows_.resize(partition.index() + 1);
  auto& rows = rows_[partition.index()];
  if (!rows)
    // Packing moves jobs between rows, which changes what single rows offer though no job came or
    // went.
    rows = std::make_unique<PartitionRows>(node_count(), [this](int rank) { touch(rank); });
  rows->set_count(rows_count(partition));
  return *rows;
}

// Whole-node jobs hold all cores of their nodes already in their allocation.
std::vector<RankCores> Occupancy::cores_of(const SelectJob& job) const {
  std::vector<RankCores> nodes;
  nodes.reserve(job.allocation->nodes.size());
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation& use) {
    nodes.push_back({rank, use.cores});
  });
  // Allocations are in rank order when they are made; nodes that have come or gone since may have
  // changed the ranks.
  if (!std::is_sorted(nodes.begin(), nodes.end(),
                      [](const RankCores& a, const RankCores& b) { return a.rank < b.rank; })) {
    std::sort(nodes.begin(), nodes.end(),
              [](const RankCores& a, const RankCores& b) { return a.rank < b.rank; });
  }
  return nodes;
}

// Memory and devices. A job that is charged neither touches no node.
void Occupancy::charge(const SelectJob& job, int sign) {
  devices_.hold(*job.allocation, sign);
  for (const DevicesOnNode& use : job.allocation->devices) {
    if (cluster_.exists(use.node)) touch(cluster_.rank(use.node));
  }
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation& use) {
    if (use.memory.value() == 0) return;
    // The memory that the job was given, and not that which its request would come to now.
    memory_.hold(rank, sign * use.memory.value());
    touch(rank);
  });
}

// R4.15 kept as counters, so that a job that leaves can be subtracted. `node_class` is that of when
// the job took its cores: a changed partition must not unbalance the counters.
void Occupancy::count_class(const SelectJob& job, NodeClass node_class, int delta) {
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    touch(rank);
    Node& node = nodes_[index(rank)];
    const auto count = [&](std::uint16_t& counter) {
      counter = static_cast<std::uint16_t>(counter + delta);
    };
    count(node.jobs_count);
    if (node_class == NodeClass::kOneRow) count(node.one_row_count);
    if (node_class == NodeClass::kReserved) count(node.reserved_count);
  });
}

// After a job has given cores back: what is busy is the union of all partitions' rows.
void Occupancy::refresh(int rank) {
  CoreSet busy;
  for (const auto& rows : rows_) {
    if (rows && !rows->empty()) busy |= rows->used(rank);
  }
  Node& node = nodes_[index(rank)];
  node.busy = busy;
  node.idle_count = facts(rank).cores_count() - busy.count();
}

// Appends to the log of what changed. A log that has grown too long is forgotten, and its readers
// start over.
void Occupancy::touch(int rank) {
  // A reader of a longer log does better to work all nodes out again.
  if (log_.size() > 4 * facts_.size() + 1024) {
    log_begin_ += log_.size() + 1;  // one more: readers at the old end must start over
    log_.clear();
  }
  log_.push_back(rank);
}

// The hardware is the same, or the books would be built again. Only memory and devices can differ
// of what counts here.
void Occupancy::node_changed(int rank) {
  NodeFacts& node = facts_[index(rank)];
  node.memory_mib = cluster_.spec_at(rank).memory.value();
  memory_.set_capacity(rank, node.memory_mib);
  touch(rank);
}

// A user-suspended job is added without cores, as after a restore.
void Occupancy::add(const SelectJob& job) {
  CHECK(job.allocation != nullptr && !in_trial_);
  const auto [added, is_new] = jobs_.emplace(job.id, Held{.job = &job, .cores = std::nullopt});
  CHECK(is_new, to_string(job.id));
  by_id_.insert(job.id, added->second);
  charge(job, +1);
  // R5.2: memory stays charged to a suspended job, cores do not.
  if (!job.user_suspended) take_cores(added->second);
}

void Occupancy::remove(const SelectJob& job) {
  CHECK(!in_trial_);
  const auto found = jobs_.find(job.id);
  if (found == jobs_.end()) return;
  release_cores(found->second);
  by_id_.erase(job.id);
  jobs_.erase(found);
  charge(job, -1);
}

// Puts the job into a row of its partition, and counts it on its nodes.
void Occupancy::take_cores(Held& held) {
  const SelectJob& job = *held.job;
  const NodeClass node_class = class_of(cluster_.partition(job.partition), *job.request);
  held.cores = node_class;
  count_class(job, node_class, +1);
  const std::vector<RankCores> nodes = cores_of(job);
  if (nodes.empty()) return;
  // Packs by what it asked for and not by what it holds, as Slurm does (R4.11).
  const int cpus = cpus_asked(cluster_, job, static_cast<int>(nodes.size()));
  rows_for(job.partition).add(job.id, nodes, cpus);
  for (const RankCores& node : nodes) {
    Node& state = nodes_[index(node.rank)];
    state.busy |= node.cores;
    state.idle_count = facts(node.rank).cores_count() - state.busy.count();
    state.held_count += node.cores.count();
  }
}

// T11: whether the job may take its cores again. There must be a row for it, and each of its nodes
// must take a job of its class as it is held now (R4.14 to R4.16). Jobs of another partition may be
// on its cores only where the gang slices the two, which it does between different tiers.
bool Occupancy::may_return(const SelectJob& job) {
  const Partition& own = cluster_.partition(job.partition);
  const NodeClass node_class = class_of(own, *job.request);
  const std::vector<RankCores> nodes = cores_of(job);
  if (!rows_for(job.partition).has_room(nodes)) return false;
  return std::all_of(nodes.begin(), nodes.end(), [&](const RankCores& node) {
    if (holds_reserved(node.rank)) return false;
    if (node_class == NodeClass::kReserved) return !holds_cores(node.rank);
    if (node_class == NodeClass::kShared) return !holds_one_row(node.rank);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const PartitionIndex other{static_cast<std::int32_t>(i)};
      if (!rows_[i] || rows_[i]->empty() || other == job.partition) continue;
      if (rows_[i]->jobs_on(node.rank) == 0) continue;
      // Jobs that share their cores never meet jobs that do not (R4.16).
      if (rows_count(other) - (has_extra_row() ? 1 : 0) > 1) return false;
      const bool stacked = rows_[i]->used(node.rank).intersects(node.cores);
      const bool sliced =
          cluster_.parameters().gang && cluster_.partition(other).tier() != own.tier();
      if (stacked && !sliced) return false;
    }
    return true;
  });
}

// R4.13: a user's resume adds cores only; memory was never given back.
bool Occupancy::resume_cores(const SelectJob& job) {
  Held* const found = find(job.id);
  if (found == nullptr) return false;  // it has ended meanwhile
  if (found->cores) return true;       // P4: nothing was released, nothing is added
  if (!may_return(job)) return false;
  take_cores(*found);
  return true;
}

// Takes the job out of its row. Its memory stays charged.
void Occupancy::release_cores(const SelectJob& job) {
  if (Held* const found = find(job.id)) release_cores(*found);
}

// Does nothing to a job that holds no cores, so that suspending twice, or ending a suspended job,
// counts once.
void Occupancy::release_cores(Held& held) {
  if (!held.cores) return;
  const SelectJob& job = *held.job;
  count_class(job, *std::exchange(held.cores, std::nullopt), -1);
  PartitionRows* const rows = this->rows(job.partition);
  if (rows == nullptr || !rows->holds(job.id)) return;  // its nodes are gone
  const std::vector<RankCores> nodes = rows->remove(job.id);
  for (const RankCores& node : nodes) {
    nodes_[index(node.rank)].held_count -= node.cores.count();
    refresh(node.rank);
  }
}

// R4.9: by tier, highest first; then as configured.
std::vector<PartitionIndex> Occupancy::partitions_in_use() const {
  std::vector<PartitionIndex> used;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] && !rows_[i]->empty()) used.emplace_back(static_cast<std::int32_t>(i));
  }
  std::sort(used.begin(), used.end(), [&](PartitionIndex a, PartitionIndex b) {
    const Partition& left = cluster_.partition(a);
    const Partition& right = cluster_.partition(b);
    if (left.tier() != right.tier()) return left.tier() > right.tier();
    if (left.order != right.order) return left.order < right.order;
    return a < b;
  });
  return used;
}

// A trial works on the books themselves and takes its steps back at the end. A question touches the
// nodes of a few jobs; a copy of the books would touch them all.
void Occupancy::begin_trial() {
  CHECK(!in_trial_ && trial_.empty());
  for (const auto& rows : rows_) {
    if (rows) rows->begin_trial();
  }
  in_trial_ = true;
  trial_log_begin_ = log_end();
}

// A step notes what the job really gave, and restore() gives back exactly that: a user-suspended
// job holds no cores, a victim that would only be suspended keeps its memory (R5.4), and a job
// whose nodes no longer exist is in no row.
//
// Counters first. A job that shares no core is taken out of them at once, and its row is looked at
// only if a question asks for rows (flush_rows()), which one that idle cores alone answer does not.
// Any other job is taken out of its row at once, because what is busy without it only the rows can
// tell.
void Occupancy::remove_for_trial(const SelectJob& job, Selector::Trial::Keep keep) {
  CHECK(in_trial_);
  const Held* const held = find(job.id);
  TrialStep step{&job, std::nullopt, keep == Selector::Trial::Keep::kNothing && held != nullptr};
  if (held != nullptr && held->cores) {
    step.cores = held->cores;
    step.alone = is_alone(job);
    count_class(job, *step.cores, -1);
    if (step.alone) show_cores(job, false);
  }
  // Noted in the step, since what was not taken away must not be put back.
  if (step.memory) charge(job, -1);
  trial_.push_back(step);
  if (step.cores && !step.alone) flush_rows();
}

// Returns true if no core of its nodes is held by two jobs, and its partition has one row, in which
// nothing is packed: its cores can be freed and taken without a look at the rows. On each of its
// nodes, then, the cores that jobs hold and the idle ones come to the number of cores; a core that
// two jobs hold would count twice.
bool Occupancy::is_alone(const SelectJob& job) const {
  const std::size_t partition = job.partition.index();
  const bool known = partition < rows_.size() && rows_[partition];
  if (!known || rows_[partition]->count() != 1) return false;
  bool alone = true;
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation&) {
    const Node& node = nodes_[index(rank)];
    alone = alone && node.held_count + node.idle_count == facts(rank).cores_count();
  });
  return alone;
}

// Called for a job that is_alone(), when it leaves its nodes or comes back.
void Occupancy::show_cores(const SelectJob& job, bool held) {
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation& use) {
    Node& node = nodes_[index(rank)];
    held ? node.busy |= use.cores : node.busy -= use.cores;
    node.idle_count = facts(rank).cores_count() - node.busy.count();
    node.held_count += held ? use.cores.count() : -use.cores.count();
  });
}

// Takes the jobs that the trial has removed out of their rows, too.
void Occupancy::flush_rows() {
  for (; flushed_ < trial_.size(); ++flushed_) take_out_of_row(trial_[flushed_]);
}

void Occupancy::take_out_of_row(TrialStep& step) {
  if (!step.cores) return;
  const SelectJob& job = *step.job;
  const std::size_t partition = job.partition.index();
  if (partition >= rows_.size() || !rows_[partition]) return;
  step.in_row = rows_[partition]->remove_for_trial(job.id);
  if (!step.in_row || step.alone) return;
  for_each_rank(cluster_, *job.allocation, [&](int rank, const NodeAllocation& use) {
    nodes_[index(rank)].held_count -= use.cores.count();
    refresh(rank);
  });
}

// The rows must stand as the job left them. A packing within the trial ends that, and then the
// whole trial must end. A step that never came to the rows is undone in the counters alone.
bool Occupancy::put_back_in_trial() {
  CHECK(in_trial_ && !trial_.empty());
  const TrialStep step = trial_.back();
  if (step.in_row && !rows_[step.job->partition.index()]->put_back()) return false;
  trial_.pop_back();
  flushed_ = std::min(flushed_, trial_.size());
  restore(step);
  return true;
}

// The reverse of remove_for_trial(), except for the rows, which the caller has restored.
void Occupancy::restore(const TrialStep& step) {
  if (step.memory) charge(*step.job, +1);
  if (!step.cores) return;
  count_class(*step.job, *step.cores, +1);
  if (step.alone) return show_cores(*step.job, true);
  for_each_rank(cluster_, *step.job->allocation, [&](int rank, const NodeAllocation& use) {
    if (step.in_row) nodes_[index(rank)].held_count += use.cores.count();
    refresh(rank);
  });
}

// The log ends where it ended when the trial began, unless it has been forgotten since.
void Occupancy::end_trial() {
  CHECK(in_trial_);
  for (const auto& rows : rows_) {
    if (rows) rows->end_trial();
  }
  // The rows have restored themselves; counters and memory follow.
  for (const TrialStep& step : trial_) restore(step);
  trial_.clear();
  flushed_ = 0;
  in_trial_ = false;
  if (log_begin_ > trial_log_begin_) return;
  // Readers first: they look the touched ranks up in the part of the log that goes.
  if (on_trial_end_) on_trial_end_(trial_log_begin_);
  log_.resize(trial_log_begin_ - log_begin_);
}

}  // namespace sched::cons_tres
