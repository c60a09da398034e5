// The ends of the allocated jobs: which of them end when, in their order, and what they leave on
// which nodes. Kept from pass to pass as far as nothing moved.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "scheduler/backfill/lookahead.h"
#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

constexpr int kRipe = std::numeric_limits<int>::min();

}  // namespace

// A start is the usual change within a pass. Its end is put into the order, instead of reading all
// ends anew for each job that the backfill starts.
void Lookahead::started(const Job& job) {
  ends_version_ = books_.version();
  forget_ripe();
  victim_kinds_.reset();
  preempted_.clear();
  // Copies of the books are made where cores cannot be counted.
  if (!has_ends_ || !counts_cores_) return changed();
  const End end = end_of(job);
  ends_.insert(std::upper_bound(ends_.begin(), ends_.end(), end, ends_before), end);
  note_if_unsettled(end);
  count_free(job, -1);
}

// By their ends; those that end together in the order of the job table.
bool Lookahead::ends_before(const End& a, const End& b) {
  return a.at != b.at ? a.at < b.at : a.order < b.order;
}

// What the job gives back on this node. A job that its user has suspended keeps its memory alone
// (R5.2).
Lookahead::Free Lookahead::freed_on(const Job& job, const NodeAllocation& use) {
  return {.cores = job.user_suspended ? 0 : use.cores.count(), .memory = use.memory.value()};
}

void Lookahead::Free::add(const Free& more, int sign) {
  cores += sign * more.cores;
  memory += sign * more.memory;
}

void Lookahead::count_free(const Job& job, int sign) {
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    free_[static_cast<std::size_t>(rank)].add(freed_on(job, use), sign);
  });
}

// Counted from the jobs that are there, and not by what came and went: the log of moves names
// nodes, and not how often or why.
void Lookahead::recount_free(NodeIndex node) {
  if (!cluster_.exists(node)) return;
  Free free{.cores = cluster_.node(node).cores()};
  for (const Job* const job : books_.usage().jobs_on(node)) {
    if (job->completing()) continue;
    for (const NodeAllocation& use : job->allocation.nodes) {
      if (use.node == node) free.add(freed_on(*job, use), -1);
    }
  }
  free_[static_cast<std::size_t>(cluster_.rank(node))] = free;
}

base::Instant Lookahead::expected_end(const Job& job) {
  const base::Duration limit = job.time_limit.value_or(kUnlimitedTime);
  base::Instant at = turns_.expected_end(job, limit, now_ + cluster_.parameters().backfill.window);
  // As recorded: what moves the end of a job that goes on after its suspension is its time limit.
  if (cluster_.parameters().as_recorded && !job.time_limit && job.start_time) {
    at = *job.start_time + kUnlimitedTime;
  }
  if (job.notice) at = std::min(at, job.notice->until);  // 7.8: its end was moved
  // It was told to end: it leaves at the end of its grace time, whatever its limit is.
  if (job.ending) at = std::min(at, job.ending->grace_end);
  at = std::min(at, now_ + 2 * kUnlimitedTime);  // one that never runs ends after all others
  return whole_second(cluster_.parameters(), at);
}

Lookahead::End Lookahead::end_of(const Job& job) {
  End end{.at = expected_end(job), .order = job.table_order, .job = &job};
  const std::vector<NodeAllocation>& nodes = job.allocation.nodes;
  if (nodes.size() == 1 && cluster_.exists(nodes.front().node)) {
    end.rank = cluster_.rank(nodes.front().node);
    end.freed = freed_on(job, nodes.front());
  }
  return end;
}

// Calls visit(rank, freed) for each node that the job leaves, with what it gives back.
template <typename Visit>
void Lookahead::for_each_node(const End& end, const Visit& visit) const {
  if (end.rank >= 0) return visit(end.rank, end.freed);
  for_each_rank(cluster_, end.job->allocation, [&](int rank, const NodeAllocation& use) {
    visit(rank, freed_on(*end.job, use));
  });
}

// All ends up to this instant, and maybe more, come to be in leaves_.
void Lookahead::note_leaves(base::Instant until) {
  last_leave_.resize(static_cast<std::size_t>(cluster_.node_count()), -1);
  for (; leaves_end_ < ends_.size() && ends_[leaves_end_].at <= until; ++leaves_end_) {
    const End& end = ends_[leaves_end_];
    const base::Instant at = guess_end(end);
    for_each_node(end, [&](int rank, const Free&) {
      std::ptrdiff_t& last = last_leave_[static_cast<std::size_t>(rank)];
      leaves_.push_back({at, end.order, end.job, last});
      last = static_cast<std::ptrdiff_t>(leaves_.size()) - 1;
    });
  }
}

// The ends are others now, or are guessed anew.
void Lookahead::forget_ripe() {
  ripenings_.clear();
  leaves_.clear();
  leaves_end_ = 0;
  last_leave_.clear();
}

// The end of a job that has not begun to run, or that ends after all others, moves with the time.
void Lookahead::note_if_unsettled(const End& end) {
  const base::Instant last = now_ + 2 * kUnlimitedTime - std::chrono::seconds{1};
  if (!end.job->ready || end.at >= last) unsettled_.push_back(end.order);
}

// Where no two jobs share a core, the free cores of a node are its cores without those of its jobs.
// With gang, or in a partition whose jobs are stacked, a core can be taken and yet be offered.
bool Lookahead::counts_cores() const {
  const auto& partitions = cluster_.partitions();
  return !cluster_.parameters().gang &&
         std::all_of(partitions.begin(), partitions.end(), [&](PartitionIndex partition) {
           return cluster_.partition(partition).max_share <= 1;
         });
}

void Lookahead::read_ends() {
  if (std::exchange(has_ends_, true)) return;
  ends_version_ = books_.version();
  forget_ripe();
  const bool as_before = ends_configuration_ == cluster_.configuration_version();
  if (books_.moves().all || !as_before || cluster_.parameters().gang) {
    read_all_ends();
  } else if (!books_.moves().jobs.empty() || !unsettled_.empty()) {
    read_moved_ends();
  }
  books_.forget_moves();
}

// Jobs that are completing have given their cores back already.
void Lookahead::read_all_ends() {
  ends_configuration_ = cluster_.configuration_version();
  counts_cores_ = counts_cores();
  ends_.clear();
  unsettled_.clear();
  free_.clear();
  for (int rank = 0; rank < cluster_.node_count(); ++rank) {
    free_.push_back({.cores = cluster_.spec_at(rank).cores()});
  }
  for (const auto& [order, job] : books_.allocated()) {
    if (job->completing()) continue;
    ends_.push_back(end_of(*job));
    note_if_unsettled(ends_.back());
    count_free(*job, -1);
  }
  std::sort(ends_.begin(), ends_.end(), ends_before);
}

// 1. The ends of jobs that moved leave, and come back as they are now.
// 2. Their nodes are counted anew.
void Lookahead::read_moved_ends() {
  std::vector<std::int64_t> moved = books_.moves().jobs;  // 1
  moved.insert(moved.end(), unsettled_.begin(), unsettled_.end());
  unsettled_.clear();
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  std::erase_if(ends_, [&](const End& end) {
    return std::binary_search(moved.begin(), moved.end(), end.order);
  });
  const auto kept = static_cast<std::ptrdiff_t>(ends_.size());
  for (const std::int64_t order : moved) {
    // Looked up by table order, because the record may be gone: a Moves entry outlives its job.
    const auto found = books_.allocated().find(order);
    if (found == books_.allocated().end() || found->second->completing()) continue;
    ends_.push_back(end_of(*found->second));
    note_if_unsettled(ends_.back());
  }
  std::sort(ends_.begin() + kept, ends_.end(), ends_before);
  std::inplace_merge(ends_.begin(), ends_.begin() + kept, ends_.end(), ends_before);
  for (const NodeIndex node : books_.moves().nodes) recount_free(node);  // 2
}

// The ends that are kept from pass to pass by way of JobBooks::moves() must be those that reading
// all jobs anew gives.
std::string Lookahead::check_invariants() {
  if (ends_version_ == 0) return {};  // no pass yet
  changed();
  read_ends();
  const std::vector<End> kept = ends_;
  const std::vector<Free> free_kept = free_;
  read_all_ends();
  const auto same = [](const End& a, const End& b) {
    return a.at == b.at && a.order == b.order && a.job == b.job && a.rank == b.rank &&
           a.freed == b.freed;
  };
  if (!std::equal(kept.begin(), kept.end(), ends_.begin(), ends_.end(), same)) {
    return "the expected ends are not those of the jobs";
  }
  if (counts_cores_ && free_kept != free_) return "what is free is not counted right";
  return {};
}

Lookahead::Ripening::Ripening(const Lookahead& lookahead, const Least& least)
    : lookahead_{lookahead}, least_{least}, free_{lookahead.free_} {
  for (int rank = 0; rank < lookahead.cluster_.node_count(); ++rank) {
    free_[static_cast<std::size_t>(rank)].memory += lookahead.cluster_.spec_at(rank).memory.value();
    if (is_enough(rank)) add_ripe(rank, lookahead.now_);
  }
}

bool Lookahead::Ripening::is_enough(int rank) const {
  const Free& free = free_[static_cast<std::size_t>(rank)];
  const NodeSpec& spec = lookahead_.cluster_.spec_at(rank);
  if (free.cores < (least_.cores > 0 ? least_.cores : spec.cores())) return false;
  const int cpus = least_.cpus > 0 ? least_.cpus : spec.cpus;
  return least_.memory.fits(cpus, spec.memory.value(), free.memory);
}

// A node ripens once.
void Lookahead::Ripening::add_ripe(int rank, base::Instant at) {
  Free& free = free_[static_cast<std::size_t>(rank)];
  order_.push_back({rank, at});
  gains_.push_back({rank, free, at, order_.size()});
  free.cores = kRipe;
}

// The next job ends.
void Lookahead::Ripening::add_end() {
  const End& end = lookahead_.ends_[next_end_++];
  const base::Instant at = lookahead_.guess_end(end);
  lookahead_.for_each_node(end, [&](int rank, const Free& freed) {
    Free& free = free_[static_cast<std::size_t>(rank)];
    if (free.cores == kRipe) return gains_.push_back({rank, freed, at, order_.size()});
    free.add(freed, 1);
    if (is_enough(rank)) add_ripe(rank, at);
  });
}

// The expected end of a job that should have ended already.
base::Instant Lookahead::guess_end(const End& last) const {
  if (last.at > now_) return last.at;
  const ClusterParameters& parameters = cluster_.parameters();
  base::Instant guess = now_;
  if (parameters.select != SelectType::kLinear) {
    const auto& own = cluster_.partition(*last.job->partition).config.over_time_limit;
    const auto over = own ? own : parameters.over_time_limit;
    // With OverTimeLimit the job may go on for so long (R8.3). Without it the job is taken to run
    // for its whole limit once more.
    guess = over ? last.at + parameters.kill_wait + *over
                 : now_ + last.job->time_limit.value_or(kUnlimitedTime);
  }
  return std::max(guess, now_ + kShortestTime);
}

}  // namespace sched
