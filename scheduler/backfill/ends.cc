#include "scheduler/backfill/ends.h"

#include <algorithm>
#include <utility>

namespace sched {
namespace {

bool ends_before(const Ends::End& a, const Ends::End& b) {
  return a.at != b.at ? a.at < b.at : a.order < b.order;
}

}  // namespace

// Two steps of one pass mostly find the books as they were, in the same second, and the ends need
// not be read again. Ends that follow from the turns of the gang are never kept: a turn that passed
// has moved them.
bool Ends::go_to(base::Instant now) {
  const bool is_later = std::exchange(now_, now) != now;
  return books_version_ == books_.version() && !is_later && !cluster_.parameters().gang;
}

// Returns false with gang, or in a partition whose jobs are stacked: a core can be taken there and
// yet be offered.
bool Ends::counts_cores() const {
  return !cluster_.parameters().gang &&
         std::ranges::all_of(cluster_.partitions(), [&](PartitionIndex partition) {
           return cluster_.partition(partition).max_share <= 1;
         });
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

std::optional<std::size_t> Ends::find(const Job& job) const {
  const auto found = std::ranges::find(ends_, &job, &End::job);
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

// A pass starts jobs one by one and asks about the next at once: to read all ends again for each of
// them would take as long as many questions. Where cores cannot be counted it must be, because
// room and copies are made of the ends.
bool Ends::add(const Job& job) {
  books_version_ = books_.version();
  if (!is_read_ || !counts_cores()) return false;
  const End end = end_of(job);
  ends_.insert(std::ranges::upper_bound(ends_, end, ends_before), end);
  return true;
}

void Ends::read() {
  if (std::exchange(is_read_, true)) return;
  books_version_ = books_.version();
  ends_.clear();
  for (const auto& [order, job] : books_.allocated()) {
    if (!job->completing()) ends_.push_back(end_of(*job));
  }
  std::ranges::sort(ends_, ends_before);
}

}  // namespace sched
