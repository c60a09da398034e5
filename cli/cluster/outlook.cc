#include "cli/cluster/outlook.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <tuple>

#include "api/wellknown.h"
#include "kube/api/time_format.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// More of them say no more.
constexpr std::size_t kBlockersMax = 5;

// The operator leaves an expected start as it is written until the plan differs by 5 s; both
// instants are shown in whole seconds.
constexpr base::Duration kPlanTolerance = std::chrono::seconds{6};

// Returns true if the job is in the queue: pending, and an operator has numbered it.
bool waits(const kube::Job& job) {
  const kube::JobState state = job.status.state.value_or(kube::JobState::kPending);
  return state == kube::JobState::kPending && !job.status.allocation && job.status.job_id;
}

// Returns true if the job is not considered now: held by the operator (status), or by a user who
// has asked just now (spec).
bool is_held(const kube::Job& job) {
  return job.status.held || job.spec.control.hold.value_or(false);
}

// Returns "job 7 (team-a/train)": the number as queue shows it, the name as kubectl takes it.
std::string label(const kube::Job& job) {
  return "job " + std::to_string(job.status.job_id.value_or(0)) + " (" + job.metadata.ns + "/" +
         job.metadata.name + ")";
}

// Returns the nodes of a hostlist that an operator has written; none if it cannot be read.
std::set<std::string> nodes_of(const std::string& hostlist) {
  const auto names = slurm::expand_hostlist(hostlist);
  return names ? std::set<std::string>{names->begin(), names->end()} : std::set<std::string>{};
}

// Returns the nodes of `hostlist` that are in `own`; "" if there are none.
std::string common_nodes(const std::set<std::string>& own, const std::string& hostlist) {
  std::vector<std::string> common;
  for (const std::string& name : nodes_of(hostlist)) {
    if (own.contains(name)) common.push_back(name);
  }
  return common.empty() ? "" : slurm::compress_hostlist(common);
}

// status.partition lists all partitions of a job that waits, separated by commas.
bool share_partition(const kube::Job& a, const kube::Job& b) {
  const auto names = slurm::split(a.status.partition, ',');
  const auto others = slurm::split(b.status.partition, ',');
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(others.begin(), others.end(), name) != others.end();
  });
}

// The order of the queue, as far as statuses show it: priority, then age by job ID.
bool is_before(const kube::Job& other, const kube::Job& job) {
  const auto place = [](const kube::Job& each) {
    return std::tuple{-each.status.priority.value_or(0), *each.status.job_id};
  };
  return place(other) < place(job);
}

// Returns the limit in force of a job that runs. Of one that waits, the time that is kept for it:
// the least that it accepts, its own limit, or the one that its partition gives it by the spec that
// is in force. nullopt if none is known here.
std::optional<base::Duration> time_limit(const kube::Job& job,
                                         const std::vector<kube::Partition>& partitions) {
  if (job.status.allocation) {
    const auto limit = limit_in_force(job);
    if (limit || job.status.observed) return limit;
  }
  if (job.spec.schedule.time_min) return job.spec.schedule.time_min;
  if (job.spec.schedule.time_limit) return job.spec.schedule.time_limit;
  for (const kube::Partition& partition : partitions) {
    if (partition.metadata.name != job.status.partition) continue;
    const kube::PartitionSpec& spec =
        partition.status.accepted ? *partition.status.accepted : partition.spec;
    if (!spec.limits) continue;
    const kube::PartitionLimits& limits = *spec.limits;
    return limits.default_time ? limits.default_time : limits.max_time;
  }
  return std::nullopt;
}

// Adds how many waiting jobs of its partitions the scheduler considers first. Held jobs are not
// considered and do not count. Nothing is said about a job that is first.
void add_place_in_queue(Lines& lines, const kube::Job& job, const std::vector<kube::Job>& all) {
  const auto count = std::count_if(all.begin(), all.end(), [&](const kube::Job& other) {
    return other.metadata.uid != job.metadata.uid && waits(other) && !is_held(other) &&
           share_partition(other, job) && is_before(other, job);
  });
  if (count == 0) return;
  const int nodes = job.spec.resources.nodes ? job.spec.resources.nodes->min : 1;
  lines.emplace_back("Queue", std::to_string(count) + (count == 1 ? " job is" : " jobs are") +
                                  " before it in its partitions; it needs " +
                                  std::to_string(nodes) + (nodes == 1 ? " node" : " nodes"));
}

// A job that has, or will have, nodes on which the waiting job is planned.
struct Blocker {
  const kube::Job* job;
  std::string where;
  std::optional<base::Instant> from;   // of one that waits too
  std::optional<base::Instant> until;  // unknown without a known time limit
};

// Returns when a job that runs is gone: at the end of its time limit, or of its grace time if it is
// being ended. A suspended job does not use up its time limit, so it leaves later by what it stood
// still.
std::optional<base::Instant> end_of(const kube::JobStatus& status,
                                    const std::optional<base::Duration>& limit, base::Instant now) {
  std::optional<base::Instant> end;
  if (limit) {
    end = status.start_time.value_or(now) + *limit +
          (status.suspend_time ? status.suspend_time->elapsed : base::Duration{0});
  }
  if (status.ending && status.ending->grace_end) {
    end = std::min(end.value_or(base::kNever), *status.ending->grace_end);
  }
  return end;
}

// Returns the jobs that run on the planned nodes, and those to which these nodes are promised
// before. The one that is expected to leave last comes first, for it decides when the job can
// start. All of that follows from statuses: ends are start plus time limit, as the backfill
// assumes. A job that stays longer than until the expected start is not waited for: it leaves room
// on its nodes, or is preempted.
std::vector<Blocker> blockers(const kube::Job& job, const std::vector<kube::Job>& all,
                              const std::vector<kube::Partition>& partitions, base::Instant now) {
  const std::set<std::string> own = nodes_of(job.status.planned_nodes);
  const base::Instant expected = *job.status.expected_start_time;
  std::vector<Blocker> found;
  for (const kube::Job& other : all) {
    const kube::JobStatus& status = other.status;
    if (other.metadata.uid == job.metadata.uid) continue;
    const bool runs = status.allocation && !(status.state && kube::is_final(*status.state));
    // A plan for a later start does not stand in the way.
    const bool has_plan =
        waits(other) && status.expected_start_time && *status.expected_start_time < expected;
    if (!runs && !has_plan) continue;
    Blocker blocker{.job = &other, .where = {}, .from = {}, .until = {}};
    blocker.where = common_nodes(own, runs ? status.allocation->hostlist : status.planned_nodes);
    if (blocker.where.empty()) continue;
    const auto limit = time_limit(other, partitions);
    if (runs) {
      blocker.until = end_of(status, limit, now);
    } else {
      blocker.from = *status.expected_start_time;
      if (limit) blocker.until = *blocker.from + *limit;
    }
    const bool never_ends = runs && !blocker.until && status.observed;
    // Both plans may be shown too early or too late.
    const base::Duration tolerance = runs ? kPlanTolerance : 2 * kPlanTolerance;
    if (never_ends || (blocker.until && *blocker.until > expected + tolerance)) continue;
    if (!runs && blocker.until) blocker.until = std::min(*blocker.until, expected);
    found.push_back(std::move(blocker));
  }
  std::stable_sort(found.begin(), found.end(), [](const Blocker& a, const Blocker& b) {
    return a.until.value_or(base::kNever) > b.until.value_or(base::kNever);
  });
  return found;
}

// Returns "n1: job 7 (team-a/train) runs there, until … by its time limit".
std::string sentence(const Blocker& blocker, base::Instant now) {
  if (blocker.from) {
    return blocker.where + ": promised to " + label(*blocker.job) + " from " +
           kube::format_time(*blocker.from) +
           (blocker.until ? " until " + kube::format_time(*blocker.until) : "");
  }
  const bool is_ending = blocker.job->status.ending && blocker.job->status.ending->grace_end;
  return blocker.where + ": " + label(*blocker.job) +
         (is_ending ? " is being ended there" : " runs there") +
         (blocker.until ? ", until " + when(*blocker.until, now) : "") +
         (blocker.until && !is_ending ? " by its time limit" : "");
}

}  // namespace

std::optional<base::Duration> limit_in_force(const kube::Job& job) {
  if (job.status.time_limit || job.status.observed) return job.status.time_limit;
  return job.spec.schedule.time_limit;
}

std::string when(base::Instant at, base::Instant now) {
  const base::Duration left = std::chrono::round<std::chrono::seconds>(at - now);
  return kube::format_time(at) +
         (left > base::Duration{0} ? ", in " + slurm::format_run_time(left) : "");
}

// 1. the place in the queue, unless the job is held or refused
// 2. the planned start, if the backfill has planned one
// 3. the jobs that hold the planned nodes until then, none of them longer
Lines outlook(const kube::Job& job, const std::vector<kube::Job>& all,
              const std::vector<kube::Partition>& partitions, base::Instant now) {
  Lines lines;
  if (!waits(job)) return lines;
  const kube::Condition* const accepted =
      kube::find_condition(job.status.conditions, kube::kAccepted);
  const bool is_refused = accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse;
  if (!is_held(job) && !is_refused) add_place_in_queue(lines, job, all);
  if (!job.status.expected_start_time) return lines;
  const std::vector<Blocker> found = blockers(job, all, partitions, now);
  // The start is not before the ends that it waits for.
  base::Instant expected = *job.status.expected_start_time;
  for (const Blocker& each : found) expected = std::max(expected, each.until.value_or(expected));
  lines.emplace_back("Expected", when(expected, now) + ", on " + job.status.planned_nodes +
                                     "; sooner if jobs end before their time limits, later if a "
                                     "limit is raised or a job of higher priority comes");
  for (std::size_t i = 0; i < found.size() && i < kBlockersMax; ++i) {
    lines.emplace_back("Waits for", sentence(found[i], now));
  }
  if (found.size() > kBlockersMax) {
    lines.emplace_back("Waits for", std::to_string(found.size() - kBlockersMax) + " other jobs");
  }
  return lines;
}

}  // namespace cli
