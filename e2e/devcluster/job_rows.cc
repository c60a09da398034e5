#include "e2e/devcluster/job_rows.h"

#include <algorithm>
#include <map>
#include <string>

#include "view/job_time.h"

namespace devcluster {
namespace {

// squeue's last column: where the job runs, or why it does not.
std::string nodes_or_reason(const kube::JobStatus& status) {
  if (status.allocation) return status.allocation->hostlist;
  return "(" + (status.reason.empty() ? "None" : status.reason) + ")";
}

}  // namespace

// Does the plugin's own computation, on the objects that were read. A job is suspended for all the
// time since its start in which it did not run.
std::vector<JobRow> job_rows(const std::vector<kube::Job>& jobs,
                             const std::vector<kube::NodeTimetable>& timetables,
                             base::Instant now) {
  std::map<std::string, const kube::NodeTimetable*> by_node;
  for (const kube::NodeTimetable& timetable : timetables) {
    by_node.emplace(timetable.metadata.name, &timetable);
  }
  // Null for a node without a timetable, on which every pod runs.
  const view::TimetableOf timetable_of = [&](const std::string& node) {
    const auto found = by_node.find(node);
    return found == by_node.end() ? nullptr : found->second;
  };
  std::vector<JobRow> rows;
  for (const kube::Job& job : jobs) {
    const view::JobMoment moment = view::job_moment(job, timetable_of, now);
    JobRow row{.name = job.metadata.name,
               .partition = job.status.partition,
               .state = moment.code,
               .run_time = moment.run_time,
               .nodes_or_reason = nodes_or_reason(job.status)};
    row.nodes_count = view::node_count(job);
    // The time since its start says nothing about a job that has ended.
    const bool over = kube::is_final(job.status.state.value_or(kube::JobState::kPending));
    if (job.status.start_time && !over) {
      row.suspended_time = std::max(base::Duration{}, now - *job.status.start_time - row.run_time);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace devcluster
