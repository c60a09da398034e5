#include "scheduler/backfill/ends.h"

#include <algorithm>
#include <utility>

namespace sched {
namespace {

bool ends_before(const Ends::End& a, const Ends::End& b) {
  return a.at != b.at ? a.at < b.at : a.order < b.order;
}

}  // namespace

// Two steps of one pass mostly find the books as they were, and the ends need not be read again.
// Ends that follow from the turns of the gang are never kept: a turn that passed has moved them.
bool Ends::go_to(base::Instant now) {
  const bool is_later = std::exchange(now_, now) != now;
  if (is_later) ++generation_;  // an overdue job's end is guessed
  return books_version_ == books_.version() && !(is_later && !unsettled_.empty()) &&
         !cluster_.parameters().gang;
}

// Returns false with gang, or in a partition whose jobs are stacked: a core can be taken there and
// yet be offered.
bool Ends::counts_cores() {
  const std::uint64_t version = cluster_.configuration_version();
  if (std::exchange(counts_cores_of_, version) != version) {
    counts_cores_ = !cluster_.parameters().gang &&
                    std::ranges::all_of(cluster_.partitions(), [&](PartitionIndex partition) {
                      return cluster_.partition(partition).max_share <= 1;
                    });
  }
  return counts_cores_;
}

// The turns say when the job will have run for its limit. Four things override that, in this order:
// with a quirk, that a job has no limit; the notice of a victim; a decided ending; and a bound for
// jobs that never run.
base::Instant Ends::expected_end(const Job& job) const {
  const base::Duration limit = job.time_limit.value_or(kUnlimitedTime);
  base::Instant at = turns_.expected_end(job, limit, now_ + cluster_.parameters().backfill.window);
  // Slurm 22.05 moves the end of a job that goes on after its suspension by its time limit.
  if (cluster_.parameters().quirks.unlimited_ends_by_the_clock && !job.time_limit &&
      job.start_time) {
    at = *job.start_time + kUnlimitedTime;
  }
  if (job.replay.notice) at = std::min(at, job.replay.notice->until);  // 7.8: its end was moved
  // It must end: it leaves at the end of its grace time, whatever its limit is.
  if (job.ending) at = std::min(at, job.ending->grace_end);
  at = std::min(at, now_ + 2 * kUnlimitedTime);  // one that never runs ends after all others
  return whole_second(cluster_.parameters(), at);
}

// The job is over its limit: it is being ended, or OverTimeLimit lets it go on. Linear guesses the
// next second, as Slurm does (R8.3).
base::Instant Ends::guess_overdue(const End& end) const {
  const ClusterParameters& parameters = cluster_.parameters();
  base::Instant guess = now_;
  if (parameters.select != SelectType::kLinear) {
    const auto& own = cluster_.partition(*end.job->partition).config.over_time_limit;
    const auto over = own ? own : parameters.over_time_limit;
    // OverTimeLimit lets the job go on for that long (R8.3). With UNLIMITED it is taken to run for
    // its whole limit once more.
    guess = over ? end.at + parameters.kill_wait + *over
                 : now_ + end.job->time_limit.value_or(kUnlimitedTime);
  }
  return std::max(guess, now_ + kShortestTime);
}

// Finds the job's end. Where jobs take turns the expected end may be another one than when the ends
// were read, and in books that are not read yet the job may be missing; then all are looked
// through.
std::optional<std::size_t> Ends::find(const Job& job) const {
  auto found = ends_.end();
  if (!cluster_.parameters().gang) {
    const End wanted{.at = expected_end(job), .order = job.table_order, .job = &job};
    found = std::ranges::lower_bound(ends_, wanted, ends_before);
  }
  if (found == ends_.end() || found->job != &job) {
    found = std::ranges::find(ends_, &job, &End::job);
  }
  if (found == ends_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ends_.begin());
}

// Returns what the job gives back on this node. A job that its user has suspended keeps its memory
// alone (R5.2).
CoresAndMemory Ends::freed_on(const Job& job, const NodeAllocation& use) {
  return {.cores = job.user_suspended ? 0 : use.cores.count(), .memory = use.memory.value()};
}

// Most jobs have one node. Its part is copied into the end, so that a walk over the ends does not
// fetch each job from memory.
Ends::End Ends::end_of(const Job& job) const {
  End end{.at = expected_end(job), .order = job.table_order, .job = &job};
  const std::vector<NodeAllocation>& nodes = job.allocation.nodes;
  if (nodes.size() == 1 && cluster_.exists(nodes.front().node)) {
    end.rank = cluster_.rank(nodes.front().node);
    end.freed = freed_on(job, nodes.front());
  }
  return end;
}

// The end of a job that has not begun to run, or that ends after all others, moves with the time.
void Ends::note_if_unsettled(const End& end) {
  const base::Instant last = now_ + 2 * kUnlimitedTime - std::chrono::seconds{1};
  if (!end.job->ready || end.at >= last) unsettled_.push_back(end.order);
}

void Ends::count_free(const Job& job, int sign) {
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    free_[static_cast<std::size_t>(rank)].add(freed_on(job, use), sign);
  });
}

// Counted from the jobs that are there, and not by what came and went: the log of moves names
// nodes, and not how often or why.
void Ends::recount_free(NodeIndex node) {
  if (!cluster_.exists(node)) return;
  CoresAndMemory free{.cores = cluster_.node(node).cores()};
  for (const Job* const job : books_.usage().jobs_on(node)) {
    if (job->completing()) continue;
    for (const NodeAllocation& use : job->allocation.nodes) {
      if (use.node == node) free.add(freed_on(*job, use), -1);
    }
  }
  free_[static_cast<std::size_t>(cluster_.rank(node))] = free;
}

// A pass starts jobs one by one and asks about the next at once: to read all that moved for each of
// them would be a walk over all ends each time. Where cores cannot be counted it must be, because
// room and copies are made of the ends.
bool Ends::add(const Job& job) {
  books_version_ = books_.version();
  ++generation_;
  if (!is_read_ || !counts_cores()) return false;
  const End end = end_of(job);
  ends_.insert(std::ranges::upper_bound(ends_, end, ends_before), end);
  note_if_unsettled(end);
  count_free(job, -1);
  return true;
}

// Reads all ends if more moved than the log tells apart, if nodes may have other ranks now, or
// where jobs take turns; otherwise those that moved, with those whose ends move by themselves. If
// there are none, what was read before holds.
void Ends::read() {
  if (std::exchange(is_read_, true)) return;
  books_version_ = books_.version();
  ++generation_;
  const bool as_before = configuration_ == cluster_.configuration_version();
  if (books_.moves().all || !as_before || cluster_.parameters().gang) {
    read_all();
  } else if (!books_.moves().jobs.empty() || !unsettled_.empty()) {
    read_moved();
  }
  books_.forget_moves();
}

void Ends::read_all() {
  configuration_ = cluster_.configuration_version();
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
  std::ranges::sort(ends_, ends_before);
}

// 1. The ends of jobs that moved leave, and come back as they are now.
// 2. Their nodes are counted again.
//
// The ends that stay keep their order, so only the few that come back are sorted before both are
// merged: O(ends) in copies instead of O(ends × log).
void Ends::read_moved() {
  std::vector<std::int64_t> moved = books_.moves().jobs;  // 1
  moved.insert(moved.end(), unsettled_.begin(), unsettled_.end());
  unsettled_.clear();
  std::ranges::sort(moved);
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  std::erase_if(ends_,
                [&](const End& end) { return std::ranges::binary_search(moved, end.order); });
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

// Brings what is kept up to date, as a pass would, and compares it with what is read from the jobs
// themselves.
std::string Ends::check_invariants() {
  if (books_version_ == 0) return {};  // no pass yet
  forget();
  read();
  const std::vector<End> kept = ends_;
  const std::vector<CoresAndMemory> free_kept = free_;
  read_all();
  if (kept != ends_) return "the expected ends are not those of the jobs";
  if (counts_cores() && free_kept != free_) return "what is free is not counted right";
  return {};
}

}  // namespace sched
