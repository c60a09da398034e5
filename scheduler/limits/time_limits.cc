#include "scheduler/limits/time_limits.h"

#include <algorithm>

#include "scheduler/limits/job_limits.h"

namespace sched {

namespace {

// Returns the partition's default. With the quirk, that of the partition that the job named first.
std::optional<base::Duration> usual_limit(const Cluster& cluster, const Job& job,
                                          PartitionIndex partition) {
  const std::vector<std::string>& named = job.request->partitions;
  if (cluster.parameters().quirks.limit_of_first_partition && !named.empty()) {
    partition = cluster.find_partition(named.front()).value_or(partition);
  }
  return cluster.partition(partition).config.default_time;
}

}  // namespace

// 1. The job's own limit, or the partition's default or maximum, cut to MaxWall.
// 2. The time left until its deadline, if that is less (13.3).
std::optional<base::Duration> TimeLimits::limit_of(const Cluster& cluster, const Job& job,
                                                   PartitionIndex partition, base::Instant now) {
  const PartitionConfig& config = cluster.partition(partition).config;
  std::optional<base::Duration> limit = job.request->time_limit;
  if (!limit) {
    // A default is cut to MaxWall of the QOS or account; a request is not.
    const auto usual = usual_limit(cluster, job, partition);
    limit = usual ? usual : config.max_time;
    const auto most = max_wall(limit_scope(cluster, *job.request, partition));
    if (most) limit = std::min(limit.value_or(*most), *most);
  }
  return until_deadline(job, limit, now);
}

// From the start on it is fixed how much is left, or the limit would shrink as the job runs.
std::optional<base::Duration> TimeLimits::until_deadline(const Job& job,
                                                         std::optional<base::Duration> limit,
                                                         base::Instant now) {
  if (!job.request->deadline) return limit;
  const base::Duration left = std::max<base::Duration>(
      *job.request->deadline - job.start_time.value_or(now), base::Duration{0});
  return std::min(limit.value_or(left), left);
}

void TimeLimits::begun(const Job& job) {
  if (job.request->deadline) deadlines_.emplace(*job.request->deadline, job.id);
}

void TimeLimits::over(Job& job) {
  disarm(job);
  if (job.request->deadline) deadlines_.erase({*job.request->deadline, job.id});
}

// The partition's OverTimeLimit counts instead of the cluster's.
std::optional<base::Duration> TimeLimits::whole_time(const Job& job) const {
  const auto& own = cluster_.partition(*job.partition).config.over_time_limit;
  const auto over = own ? own : cluster_.parameters().over_time_limit;
  // OverTimeLimit=UNLIMITED (no value) switches the end by the time limit off.
  if (!job.time_limit || !over) return std::nullopt;
  return *job.time_limit + *over;
}

// The timer is the earliest instant at which the job can have run for what is left, exact if that
// is less than a slice away (Turns::earliest). A job under a shadow has none.
void TimeLimits::arm(Job& job, base::Instant now) {
  disarm(job);
  if (!job.ready || !job.allocated() || job.ending || job.user_suspended) return;
  const auto whole = whole_time(job);
  if (!whole) return;
  // A job over its limit fires at the next instant, and not at this one, so that firing and arming
  // cannot go round in a circle.
  const base::Duration left = std::max(*whole - turns_.run_time(job, now), base::Duration{1});
  job.limit_timer = turns_.earliest(job, left);
  if (job.limit_timer) timers_.emplace(*job.limit_timer, job.id);
}

// A timer that fires too early only costs a look (is_reached()), so it is never put off here.
void TimeLimits::advance(Job& job, base::Instant now) {
  // Called for all members of a component whenever one of them changes. The clock says whether the
  // change is of this instant; without one the old bound holds.
  if (!job.limit_timer || job.clock.as_of != now) return;
  const auto whole = whole_time(job);
  if (whole && *job.limit_timer > now + (*whole - job.clock.run)) arm(job, now);
}

void TimeLimits::disarm(Job& job) {
  if (job.limit_timer) timers_.erase({*job.limit_timer, job.id});
  job.limit_timer.reset();
}

// The job's run time was raised from outside (JobRan), so the limit may be exceeded already.
void TimeLimits::check_at_once(Job& job, base::Instant now) {
  arm(job, now);
  if (job.user_suspended) return;
  const auto whole = whole_time(job);
  if (!whole || job.clock.run < *whole) return;
  disarm(job);
  job.limit_timer = now;
  timers_.emplace(now, job.id);
}

std::optional<base::Instant> TimeLimits::next_due() const {
  std::optional<base::Instant> due;
  if (!timers_.empty()) due = timers_.begin()->first;
  if (deadlines_.empty()) return due;
  return std::min(due.value_or(base::kNever), deadlines_.begin()->first);
}

// A job that is ending already, and has a grace time, has no later end than its deadline.
Job* TimeLimits::take_late(base::Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Job* const job = books_.find(deadlines_.extract(deadlines_.begin()).value().second);
    if (job != nullptr && job->allocated() && !job->ending) return job;
  }
  return nullptr;
}

// Also false for a job whose timer has outlived its run: it ended, or is ending for another reason.
bool TimeLimits::is_reached(Job& job, base::Instant now) {
  job.limit_timer.reset();
  if (!job.allocated() || !job.ready || job.ending) return false;
  const auto whole = whole_time(job);
  if (!whole) return false;
  // Reached, or the timer was only a lower bound and is set again.
  if (turns_.run_time(job, now) >= *whole) return true;
  arm(job, now);
  return false;
}

}  // namespace sched
