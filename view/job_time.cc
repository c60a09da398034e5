#include "view/job_time.h"

#include <algorithm>
#include <optional>

#include "slurm/hostlist.h"
#include "timetable/timetable.h"

namespace view {
namespace {

// The job's pod on one of its nodes that lists it: all questions about its turns are asked of the
// timetable by its index.
struct Listed {
  const kube::NodeTimetable* timetable = nullptr;
  std::uint16_t pod = 0;
};

// Empty if the job has none, or the list cannot be read.
std::vector<std::string> nodes_of(const kube::Job& job) {
  if (!job.status.allocation) return {};
  const auto nodes = slurm::expand_hostlist(job.status.allocation->hostlist);
  return nodes ? *nodes : std::vector<std::string>{};
}

// Returns the job's pod in the node's timetable; nullopt if that does not list it. An invalid
// timetable lists none, because the agent does not obey it either.
std::optional<Listed> find_listed_on(const std::string& node, const kube::Job& job,
                                     const TimetableOf& timetable_of) {
  const kube::NodeTimetable* found = timetable_of(node);
  if (found == nullptr || !timetable::validate(found->spec.timetable)) return std::nullopt;
  const std::vector<kube::TimetablePod>& pods = found->spec.pods;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i].job_uid == job.metadata.uid) return Listed{found, static_cast<std::uint16_t>(i)};
  }
  return std::nullopt;
}

// Returns the first of the job's nodes whose timetable lists it; nullopt if none does. One is
// enough: all pods of a gang have the same turns.
std::optional<Listed> find_listed(const kube::Job& job, const TimetableOf& timetable_of) {
  for (const std::string& node : nodes_of(job)) {
    if (const auto listed = find_listed_on(node, job, timetable_of)) return listed;
  }
  return std::nullopt;
}

bool runs_in(const timetable::PodSet& turn, std::uint16_t pod) {
  return std::binary_search(turn.begin(), turn.end(), pod);
}

// Returns the next instant at which this pod is switched. Others may be switched before it.
std::optional<base::Instant> next_switch(const Listed& listed, base::Instant now) {
  const timetable::Timetable& table = listed.timetable->spec.timetable;
  const bool runs = timetable::runs_at(table, listed.pod, now);
  std::optional<base::Instant> at = timetable::next_change(table, now);
  constexpr std::size_t kChangesMax = timetable::kPlanEntriesMax + timetable::kCycleSlotsMax;
  for (std::size_t i = 0; at && i < kChangesMax; ++i) {
    if (timetable::runs_at(table, listed.pod, *at) != runs) return at;
    at = timetable::next_change(table, *at);
  }
  return std::nullopt;
}

// Returns the run time by the timetable: the operator has written how long the pod had run at
// `asOf`, and the timetable says when it runs since. asOf may lie ahead, because a change is
// published before it takes effect; then the time until there is subtracted. Example: ran = 60 s as
// of 12:00:10, turns of 30 s that begin at 12:00:00. At 12:00:05 it is 55 s.
base::Duration run_time_listed(const Listed& listed, base::Instant now) {
  const kube::NodeTimetableSpec& spec = listed.timetable->spec;
  const base::Duration ran = spec.pods[listed.pod].ran;
  if (!spec.as_of) return ran;
  const base::Duration between = timetable::run_time(
      spec.timetable, listed.pod, std::min(*spec.as_of, now), std::max(*spec.as_of, now));
  return std::max(base::Duration{0}, *spec.as_of <= now ? ran + between : ran - between);
}

// Returns the run time that the status has, brought up to now if the job runs all the time since.
base::Duration run_time_in_status(const kube::Job& job, base::Instant now, bool runs) {
  if (!job.status.run_time) {
    // Not written yet: since its start it has run all the time.
    return runs && job.status.start_time ? std::max(base::Duration{0}, now - *job.status.start_time)
                                         : base::Duration{0};
  }
  base::Duration elapsed = job.status.run_time->elapsed;
  if (runs) elapsed += std::max(base::Duration{0}, now - job.status.run_time->as_of);
  return elapsed;
}

}  // namespace

// Works out what a job does at an instant. The stored status does not change with the turns, or the
// API server would see a write for each. So the state is computed as the agents compute it, from
// the timetable and the clock:
// 1. a job without nodes: its state, and the run time that the status has
// 2. pods are not ready: CF, no run time yet
// 3. a timetable lists it: R or S by its slots
// 4. no timetable lists it: nothing contends for its nodes, and it runs, or stands still if its
//    status is Suspended
JobMoment job_moment(const kube::Job& job, const TimetableOf& timetable_of, base::Instant now) {
  const kube::JobState state = job.status.state.value_or(kube::JobState::kPending);
  const bool completing = kube::is_true(job.status.conditions, "Completing");
  const bool active = state == kube::JobState::kRunning || state == kube::JobState::kSuspended;
  if (!active || !job.status.allocation) {
    return {.code = completing ? "CG" : state_code(state),
            .run_time = active || kube::is_final(state) ? run_time_in_status(job, now, false)
                                                        : base::Duration{0}};
  }
  if (!kube::is_true(job.status.conditions, "Ready")) {
    return {.code = completing ? "CG" : "CF", .run_time = base::Duration{0}};
  }
  if (const std::optional<Listed> listed = find_listed(job, timetable_of)) {
    const bool runs = timetable::runs_at(listed->timetable->spec.timetable, listed->pod, now);
    return {.code = completing ? "CG" : (runs ? "R" : "S"),
            .run_time = run_time_listed(*listed, now)};
  }
  const bool goes_on = !completing && state == kube::JobState::kRunning;
  return {.code = completing ? "CG" : "R", .run_time = run_time_in_status(job, now, goes_on)};
}

// A plan that was made before a hold no longer counts. SOURCE: Slurm shows the begin time of a job
// that waits for it, also after a requeue.
std::optional<base::Instant> expected_start(const kube::Job& job, base::Instant now) {
  const kube::JobStatus& status = job.status;
  if (status.state.value_or(kube::JobState::kPending) != kube::JobState::kPending) {
    return std::nullopt;
  }
  const bool is_held = status.held || job.spec.control.hold.value_or(false);
  if (status.expected_start_time && !is_held) return status.expected_start_time;
  std::optional<base::Instant> begin;
  for (const auto& time : {status.eligible_time, job.spec.schedule.begin_time}) {
    if (time && *time > now) begin = std::max(begin.value_or(*time), *time);
  }
  return begin;
}

// The plan is not counted: it leads into the cycle, which is what goes on.
std::optional<SharedTurns> shared_turns(const kube::Job& job, const TimetableOf& timetable_of,
                                        base::Instant now) {
  if (!kube::is_true(job.status.conditions, "Ready")) return std::nullopt;
  std::optional<SharedTurns> shared;
  for (const std::string& node : nodes_of(job)) {
    const std::optional<Listed> listed = find_listed_on(node, job, timetable_of);
    if (!listed) continue;
    const kube::NodeTimetableSpec& spec = listed->timetable->spec;
    const std::vector<timetable::PodSet>& cycle = spec.timetable.cycle;
    const auto own = static_cast<std::size_t>(std::ranges::count_if(
        cycle, [&](const timetable::PodSet& turn) { return runs_in(turn, listed->pod); }));
    // A gang has the same turns on all its nodes.
    if (own == 0 || own == cycle.size()) return std::nullopt;
    if (!shared) {
      shared = SharedTurns{.slice = spec.timetable.slice,
                           .own = own,
                           .all = cycle.size(),
                           .next_change = next_switch(*listed, now)};
    }
    for (const timetable::PodSet& turn : cycle) {
      if (runs_in(turn, listed->pod)) continue;
      for (const std::uint16_t pod : turn) {
        SharedTurns::Other& other = shared->with[spec.pods[pod].job_uid];
        other.ns = spec.pods[pod].ns;
        if (other.nodes.empty() || other.nodes.back() != node) other.nodes.push_back(node);
      }
    }
  }
  return shared;
}

int node_count(const kube::Job& job) {
  if (job.status.allocation) return job.status.allocation->nodes;
  return job.spec.resources.nodes ? job.spec.resources.nodes->min : 1;
}

std::string state_code(kube::JobState state) {
  switch (state) {
    case kube::JobState::kPending:
      return "PD";
    case kube::JobState::kRunning:
      return "R";
    case kube::JobState::kSuspended:
      return "S";
    case kube::JobState::kCompleted:
      return "CD";
    case kube::JobState::kFailed:
      return "F";
    case kube::JobState::kCancelled:
      return "CA";
    case kube::JobState::kTimeout:
      return "TO";
    case kube::JobState::kPreempted:
      return "PR";
    case kube::JobState::kNodeFail:
      return "NF";
    case kube::JobState::kOutOfMemory:
      return "OOM";
    case kube::JobState::kDeadline:
      return "DL";
  }
  return "?";
}

}  // namespace view
