#include "e2e/devcluster/job_rows.h"

#include <algorithm>

#include "timetable/timetable.h"

namespace devcluster {
namespace {

using kube::JobState;

// squeue's code of a job that is not being sliced. SOURCE: squeue(1), JOB STATE CODES.
std::string state_code(const kube::Job& job) {
  if (!job.status.state) return "PD";
  switch (*job.status.state) {
    case JobState::kPending:
      return "PD";
    case JobState::kRunning:
      return kube::is_true(job.status.conditions, "Ready") ? "R" : "CF";
    case JobState::kSuspended:
      return "S";
    case JobState::kCompleted:
      return "CD";
    case JobState::kFailed:
      return "F";
    case JobState::kCancelled:
      return "CA";
    case JobState::kTimeout:
      return "TO";
    case JobState::kPreempted:
      return "PR";
    case JobState::kNodeFail:
      return "NF";
    case JobState::kOutOfMemory:
      return "OOM";
    case JobState::kDeadline:
      return "DL";
  }
  return "?";
}

struct Place {
  const kube::NodeTimetable* timetable = nullptr;
  std::uint16_t index = 0;
};

// Where the job is listed; any node tells the same.
std::optional<Place> place_of(const kube::Job& job,
                              const std::vector<kube::NodeTimetable>& timetables) {
  for (const kube::NodeTimetable& timetable : timetables) {
    const auto& pods = timetable.spec.pods;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (pods[i].job_uid != job.metadata.uid) continue;
      if (!timetable::validate(timetable.spec.timetable).ok()) continue;
      return Place{&timetable, static_cast<std::uint16_t>(i)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<JobRow> job_rows(const std::vector<kube::Job>& jobs,
                             const std::vector<kube::NodeTimetable>& timetables,
                             base::Instant now) {
  std::vector<JobRow> rows;
  for (const kube::Job& job : jobs) {
    JobRow row{.name = job.metadata.name,
               .partition = job.status.partition,
               .state = state_code(job),
               .nodes_or_reason = job.status.node_list_or_reason};
    if (row.partition.empty() && !job.spec.partitions.empty())
      row.partition = job.spec.partitions[0];
    if (job.spec.nodes && job.spec.nodes->min) row.nodes_count = *job.spec.nodes->min;
    if (job.status.run_time) row.run_time = job.status.run_time->elapsed;
    const bool ready = kube::is_true(job.status.conditions, "Ready");
    const auto place = place_of(job, timetables);
    if (ready && place && place->timetable->spec.as_of) {
      const kube::NodeTimetableSpec& spec = place->timetable->spec;
      row.state = timetable::runs_at(spec.timetable, place->index, now) ? "R" : "S";
      row.run_time = spec.pods[place->index].ran;
      if (now > *spec.as_of) {
        row.run_time += timetable::run_time(spec.timetable, place->index, *spec.as_of, now);
      }
    } else if (row.state == "R" && job.status.run_time && job.status.run_time->as_of) {
      row.run_time += std::max(base::Duration{}, now - *job.status.run_time->as_of);
    } else if (row.state == "R" && job.status.start_time) {
      row.run_time = std::max(base::Duration{}, now - *job.status.start_time);
    }
    if (job.status.start_time && !kube::is_final(job.status.state.value_or(JobState::kPending))) {
      row.suspended_time = std::max(base::Duration{}, now - *job.status.start_time - row.run_time);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace devcluster
