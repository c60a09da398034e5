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

// Returns the job's own time limit, or the one that its partition gives it by the spec that is in
// force; nullopt if none is known here.
std::optional<base::Duration> time_limit(const kube::Job& job,
                                         const std::vector<kube::Partition>& partitions) {
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

// Returns "2026-01-01T00:10:00Z, in 10:00"; without the second part if that is past.
std::string when(base::Instant at, base::Instant now) {
  const base::Duration left = std::chrono::round<std::chrono::seconds>(at - now);
  return kube::format_time(at) +
         (left > base::Duration{0} ? ", in " + slurm::format_run_time(left) : "");
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

// A job that has, or will have, nodes on which the waiting job is planned. `until` is only for the
// order; the sentence has it as text.
struct Blocker {
  base::Instant until;
  std::string sentence;
};

// Returns the jobs that run on the planned nodes, and those to which these nodes are promised
// before. The one that is expected to leave last comes first, for it decides when the job can
// start. All of that follows from statuses: ends are start plus time limit, as the backfill
// assumes.
std::vector<Blocker> blockers(const kube::Job& job, const std::vector<kube::Job>& all,
                              const std::vector<kube::Partition>& partitions, base::Instant now) {
  const std::set<std::string> own = nodes_of(job.status.planned_nodes);
  std::vector<Blocker> found;
  for (const kube::Job& other : all) {
    const kube::JobStatus& status = other.status;
    if (other.metadata.uid == job.metadata.uid) continue;
    const bool runs = status.allocation && !(status.state && kube::is_final(*status.state));
    // A plan for a later start does not stand in the way.
    const bool has_plan = waits(other) && status.expected_start_time &&
                          *status.expected_start_time < *job.status.expected_start_time;
    if (!runs && !has_plan) continue;
    const std::string where =
        common_nodes(own, runs ? status.allocation->hostlist : status.planned_nodes);
    if (where.empty()) continue;
    const auto limit = time_limit(other, partitions);
    // Without a known time limit it counts as the last to leave.
    Blocker blocker{base::kNever, where + ": "};
    blocker.sentence += runs ? label(other) + " runs there"
                             : "promised to " + label(other) + " from " +
                                   kube::format_time(*status.expected_start_time);
    if (limit) {
      blocker.until = (runs ? status.start_time.value_or(now) : *status.expected_start_time) +
                      // A suspended job does not use up its time limit, so it leaves later by what
                      // it stood still.
                      *limit +
                      (status.suspend_time ? status.suspend_time->elapsed : base::Duration{0});
      blocker.sentence += runs ? ", until " + when(blocker.until, now) + " by its time limit"
                               : " until " + kube::format_time(blocker.until);
    }
    found.push_back(std::move(blocker));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Blocker& a, const Blocker& b) { return a.until > b.until; });
  return found;
}

}  // namespace

// 1. the place in the queue, unless the job is held or refused
// 2. the planned start, if the backfill has planned one
// 3. the jobs that hold the planned nodes until then
Lines outlook(const kube::Job& job, const std::vector<kube::Job>& all,
              const std::vector<kube::Partition>& partitions, base::Instant now) {
  Lines lines;
  if (!waits(job)) return lines;
  const kube::Condition* const accepted =
      kube::find_condition(job.status.conditions, kube::kAccepted);
  const bool is_refused = accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse;
  if (!is_held(job) && !is_refused) add_place_in_queue(lines, job, all);
  if (!job.status.expected_start_time) return lines;
  lines.emplace_back("Expected", when(*job.status.expected_start_time, now) + ", on " +
                                     job.status.planned_nodes +
                                     "; sooner if jobs end before their time limits, later if a "
                                     "limit is raised or a job of higher priority comes");
  const std::vector<Blocker> found = blockers(job, all, partitions, now);
  for (std::size_t i = 0; i < found.size() && i < kBlockersMax; ++i) {
    lines.emplace_back("Waits for", found[i].sentence);
  }
  if (found.size() > kBlockersMax) {
    lines.emplace_back("Waits for", std::to_string(found.size() - kBlockersMax) + " other jobs");
  }
  return lines;
}

}  // namespace cli
