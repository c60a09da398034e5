#include "scheduler/queue/admission.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utc.h"
#include "scheduler/queue/dependencies.h"

namespace sched {
namespace {

// Returns when the job may start at the earliest: its begin time, or the end of its requeue delay.
// A job that waits for an instant is in no queue, so it blocks none behind it.
base::Instant eligible_from(const Job& job) {
  return std::max(job.request->begin_time.value_or(job.submit_time),
                  job.not_before.value_or(base::Instant::min()));
}

// 3.2 step 5: among partitions of one tier the job's own list decides.
int place_in_list(const JobRequest& request, const std::string& partition) {
  const auto& names = request.partitions;
  return static_cast<int>(std::ranges::find(names, partition) - names.begin());
}

std::optional<std::string> refused_array(const ArrayRequest& array, int tasks_end) {
  const auto last = array.tasks.last();
  if (!last) return "the array names no tasks";
  if (*last < tasks_end) return std::nullopt;
  return "Invalid job array specification: task " + std::to_string(*last) +
         " is not below MaxArraySize, which is " + std::to_string(tasks_end);
}

}  // namespace

// 13.3: with a least time limit the job can still make its deadline if that much time is left.
std::optional<base::Instant> latest_start(const JobRequest& request) {
  if (!request.deadline) return std::nullopt;
  const auto limit = request.time_min ? request.time_min : request.time_limit;
  return *request.deadline - limit.value_or(base::Duration{0});
}

Admission::Admission(const Cluster& cluster, JobBooks& books, bool wakes)
    : cluster_{cluster}, books_{books}, wakes_{wakes} {
  books_.on_over([this](const Job& job) {
    outside_.erase(job.table_order);
    outside_waiting_.erase(job.table_order);
  });
}

// 1. Partitions that drain or are inactive take no new jobs (1.2.1).
// 2. EnforcePartLimits: a limit of the partition turns the job away instead of letting it wait.
//
// ANY takes a job that one of its partitions would take; ALL wants all of them to (1.1).
std::optional<std::string> Admission::refused_at_submit(const JobRequest& request) const {
  if (request.array) {
    if (auto refusal = refused_array(*request.array, cluster_.parameters().max_array_size)) {
      return refusal;
    }
  }
  const std::vector<PartitionIndex> partitions = partitions_of(cluster_, request);
  const auto takes_none = [&](PartitionIndex partition) {
    const PartitionState state = cluster_.partition(partition).config.state;
    return state == PartitionState::kDrain || state == PartitionState::kInactive;
  };
  if (!partitions.empty() && std::ranges::all_of(partitions, takes_none)) {
    const PartitionConfig& config = cluster_.partition(partitions.front()).config;
    return "partition " + config.name + " takes no new jobs: it is " +
           (config.state == PartitionState::kDrain ? "draining" : "inactive");
  }
  const EnforcePartLimits enforce = cluster_.parameters().enforce_part_limits;
  if (enforce == EnforcePartLimits::kNone) return std::nullopt;
  std::string message;
  std::size_t failed = 0;
  for (const PartitionIndex partition : partitions) {
    const auto refusal = refused_by_partition(cluster_, request, partition);
    const bool is_limit = refusal && (refusal->reason == Reason::kPartitionTimeLimit ||
                                      refusal->reason == Reason::kPartitionNodeLimit ||
                                      refusal->reason == Reason::kMaxMemPerLimit);
    if (!is_limit) continue;
    ++failed;
    message = refusal->message + ", and EnforcePartLimits is set: ask for less";
  }
  if (failed == 0) return std::nullopt;
  if (enforce == EnforcePartLimits::kAny && failed < partitions.size()) return std::nullopt;
  return message;
}

// Returns the key of 3.3, worked out when the job enters the queue. As long as it waits only
// new_priority() changes it.
QueueRecord Admission::record_of(Job& job, PartitionIndex partition) const {
  const Partition& where = cluster_.partition(partition);
  const int order =
      job.request->partitions.size() < 2 ? 0 : place_in_list(*job.request, where.config.name);
  if (is_fifo(cluster_)) {
    return {.fifo_order = behind_tasks(job.id, job.table_order),
            .job = job.id,
            .partition_order = order,
            .partition = partition,
            .record = &job};
  }
  return {.tier = where.tier(),
          .priority = priority_in(job, partition),
          .submit_time = job.submit_time,
          .job = job.id,
          .partition_order = order,
          .partition = partition,
          .record = &job};
}

// A job may have a priority for each of its partitions (R9.5); without one it has its own.
Priority Admission::priority_in(const Job& job, PartitionIndex partition) {
  for (const PartitionPriority& each : job.factors.priority_in) {
    if (each.partition == partition) return each.priority;
  }
  return job.priority;
}

// Jobs outside of the queue need new priorities too, because they may enter it before the next
// period. Slurm's FIFO is left alone: its key has no priority in it.
void Admission::begin_priorities(WorkOut work_out) {
  CHECK(!work_out_);
  work_out_ = std::move(work_out);
  outside_waiting_.swap(outside_);  // all of them: none had been left in there
  if (!is_fifo(cluster_)) queue_.begin_priorities();
}

// Looks at the jobs that are in no queue, and then the records. A step goes on where the last one
// ended, whatever came or went between: what still waits for its new priority is in a set, or in a
// part of the queue, of its own.
std::optional<bool> Admission::step_priorities(std::size_t jobs) {
  for (; !outside_waiting_.empty(); --jobs) {
    if (jobs == 0) return std::nullopt;
    Job& job = *books_.table().all().at(*outside_waiting_.begin());
    outside_.insert(outside_waiting_.extract(outside_waiting_.begin()));
    if (!job.held) work_out_(job);
  }
  std::optional<bool> moved = false;
  if (!is_fifo(cluster_)) {
    moved = queue_.step_priorities(
        jobs, [this](const QueueRecord& queued) { return new_priority(queued); });
  }
  if (moved) work_out_ = nullptr;
  return moved;
}

// Works a job with several records out with each of them, since it is not known which of them comes
// first. The priority is noted with the job, too: erase() finds the record by it. For a single
// record it stands beside the job's own priority, so that nothing else of it must be fetched.
Priority Admission::new_priority(const QueueRecord& queued) {
  Job& job = *queued.record;
  work_out_(job);
  // Fixed terms are those of a job with one partition, which keeps no list of priorities.
  const bool has_one = job.factors.fixed_terms_version != 0;
  const Priority priority = has_one ? job.priority : priority_in(job, queued.partition);
  if (job.queued.in.size() == 1) return job.queued.priority = priority;
  for (QueueRecord& record : job.queued.in) {
    if (record.partition == queued.partition) record.priority = priority;
  }
  return priority;
}

// Takes the job out of the queue in all its partitions. A new priority that the job still waits for
// is worked out now, as of before whatever is about to happen to it.
void Admission::withdraw(Job& job) {
  if (job.queued.in.size() == 1) job.queued.in.front().priority = job.queued.priority;
  bool waited = outside_waiting_.erase(job.table_order) > 0;
  for (const QueueRecord& record : job.queued.in) {
    waited = queue_.erase(record, cluster_) || waited;
  }
  if (waited && !job.held) work_out_(job);
  job.queued.in.clear();
}

void Admission::forget(Job& job) {
  withdraw(job);
  outside_.erase(job.table_order);
}

// The array keeps the reason that a pass gave.
void Admission::task_started(Job& array, base::Instant now) {
  if (array.startable() == 0) return admit(array, now);
  if (!is_fifo(cluster_)) return;
  for (QueueRecord& record : array.queued.in) {
    queue_.erase(record, cluster_);
    record = record_of(array, record.partition);
    queue_.insert(record, cluster_);
  }
}

// Asks the gates of the job itself, in the order in which their reasons count.
std::optional<Refusal> Admission::refused_by_job(const Job& job, base::Instant now) const {
  if (const auto held = job.held.shown()) return Refusal{*held, held_message(job)};
  const TermState terms = state_of(job.terms, job.request->dependency.any);
  if (terms != TermState::kMet) {
    return Refusal{
        terms == TermState::kOpen ? Reason::kDependency : Reason::kDependencyNeverSatisfied,
        dependency_message(job)};
  }
  // Such a job loses neither its place nor its age.
  if (job.retry.at > now) {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(job.retry.at);
    return Refusal{Reason::kBeginTime,
                   "its start was refused; it is tried again at " + base::format_utc(whole),
                   job.retry.at};
  }
  if (const base::Instant from = eligible_from(job); from > now) {
    // An instant, not a duration from now: a reason that did not change is not published again.
    const auto whole = std::chrono::ceil<std::chrono::seconds>(from);
    return Refusal{Reason::kBeginTime,
                   "may start at " + base::format_utc(whole) + " at the earliest", from};
  }
  if (job.is_throttled()) return Refusal{Reason::kJobArrayTaskLimit, throttled_message(job)};
  return std::nullopt;
}

// Held jobs are not looked at by passes, so a node that would suit one must be noticed here,
// after each change of nodes or configuration (2.4). Only jobs that were held for that reason are
// gone through. One that still fits nowhere is held again by the next pass: it costs one try for
// each such change.
void Admission::release_bad_constraints(base::Instant now) {
  for (const std::int64_t order : std::exchange(unfit_, {})) {
    const auto at = books_.table().all().find(order);
    if (at == books_.table().all().end()) continue;
    Job& job = *at->second;
    if (!job.pending() || !job.held.has(HoldBy::kImpossible)) continue;
    withdraw(job);
    job.held.clear(HoldBy::kImpossible);
    if (!job.held) books_.set_reason(job, Reason::kNone);
    admit(job, now);
  }
}

// Decides where the job waits now; called after whatever may have changed it.
//
// 1. It leaves the queue. A job that is held gives up its claim.
// 2. The gates of the job: held, or not before some instant. A timer looks at it again then, and
//    another one when it is too late for its deadline, wherever it waits.
// 3. The gates of each of its partitions; it gets a record in those that let it in.
// 4. In no queue: the refusal of its first partition is its reason. Otherwise a pass says why it
//    waits; a reason that a pass gave before stays until then, so that it is not published twice.
void Admission::admit(Job& job, base::Instant now) {
  withdraw(job);
  books_.changed();
  if (job.count() == 0) return forget(job);
  if (job.held) books_.clear_claim(job, true, now);
  if (job.held.has(HoldBy::kImpossible)) unfit_.insert(job.table_order);
  // Until it is eligible this is when it will be, as things are now. Afterwards it only gets later.
  const base::Instant eligible = std::max(eligible_from(job), job.submit_time);
  job.eligible_time = job.eligible_time > now ? eligible : std::max(job.eligible_time, eligible);
  if (const auto latest = latest_start(*job.request);
      latest && wakes_ && !job.held.by_someone()) {
    timers_.emplace(*latest + base::Duration{1}, job.id);  // no pass may come to it then
  }
  if (auto refusal = refused_by_job(job, now)) {
    if (refusal->until) timers_.emplace(*refusal->until, job.id);
    outside_.insert(job.table_order);
    books_.set_plan(job, std::nullopt);
    books_.set_reason(job, refusal->reason, std::move(refusal->message));
    return;
  }
  std::optional<Refusal> first;
  for (const PartitionIndex partition : partitions_of(cluster_, *job.request)) {
    if (auto refusal = refused_by_partition(cluster_, *job.request, partition)) {
      if (!first) first = std::move(refusal);
      continue;
    }
    queue_.insert(job.queued.in.emplace_back(record_of(job, partition)), cluster_);
    job.queued.priority = job.queued.in.back().priority;
    unexplained_.note(job.id, books_.table().size());
  }
  if (job.queued.in.empty()) {
    outside_.insert(job.table_order);
    books_.set_plan(job, std::nullopt);
    if (!first) {  // its partitions were deleted
      first = Refusal{Reason::kPartitionInactive, job.request->partitions.empty()
                                                      ? "no partition is the default"
                                                      : "no partition that it names exists"};
    }
    books_.set_reason(job, first->reason, std::move(first->message));
    return;
  }
  outside_.erase(job.table_order);
  if (job.reason != Reason::kResources && job.reason != Reason::kPriority) {
    books_.set_reason(job, Reason::kNone);
  }
}

// Admits all waiting jobs again, in job-table order, after a change of the configuration. The queue
// has forgotten its records (configure), so the jobs must not take records out.
void Admission::admit_all(base::Instant now) {
  CHECK(!work_out_);
  queue_.configure(cluster_);
  for (const auto& [order, job] : books_.table().all()) {
    job->queued.in.clear();
    if (job->pending()) admit(*job, now);
  }
}

// Returns true if the job has ended with state Deadline (13.3).
bool Admission::end_if_too_late(Job& job, base::Instant now) {
  const auto latest = latest_start(*job.request);
  if (!latest || now <= *latest) return false;
  books_.clear_claim(job, false, now);
  books_.finish(job, JobState::kDeadline);
  return true;
}

std::optional<base::Instant> Admission::next_due() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

// A timer may be left over from an earlier state of the job: admit() works out what holds now. A
// job that must still wait sets its next timer there.
void Admission::fire_timers(base::Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const JobId id = timers_.begin()->second;
    timers_.erase(timers_.begin());
    Job* job = books_.find(id);
    if (job == nullptr || !job->pending() || job->count() == 0) continue;
    if (wakes_ && !job->held.by_someone() && end_if_too_late(*job, now)) {
      withdraw(*job);
    } else {
      admit(*job, now);
    }
  }
}

bool Admission::has_timer(JobId id) const {
  return std::any_of(timers_.begin(), timers_.end(),
                     [id](const auto& timer) { return timer.second == id; });
}

std::string Admission::throttled_message(const Job& job) {
  const Job& array = job.is_array() ? job : *job.whole;
  const ArrayRequest& request = *array.request->array;
  if (request.at_once && array.tasks->running >= *request.at_once) {
    return "as many tasks of its array run as may at once, " + std::to_string(*request.at_once);
  }
  return "as many tasks of its array have started and not ended as may, " +
         std::to_string(*request.begun_most);
}

// Other reasons for a hold come with a message of their own, which stays.
std::string Admission::held_message(const Job& job) const {
  const Reason shown = *job.held.shown();
  if (shown == Reason::kJobHeldAdmin) return "held by an administrator until it is released";
  if (shown == Reason::kJobHeldUser) {
    return job.held.has(HoldBy::kUser) ? "held by its user until it is released"
                                       : "suspended by its user until it is resumed";
  }
  if (shown != Reason::kJobHoldMaxRequeue) return job.message;
  return "its nodes failed more than the " +
         std::to_string(cluster_.parameters().queue.max_batch_requeue) +
         " times that are allowed; held until it is released";
}

}  // namespace sched
