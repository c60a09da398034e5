#include "operator/jobs/job_totals.h"

#include <algorithm>
#include <chrono>

#include "translation/reason_names.h"

namespace control {
namespace {

JobTotals::Series series_of(const JobRecord& job) {
  return {.partition = job.wanted().partition, .qos = job.request().qos};
}

base::Duration run_time_of(const JobRecord& job) {
  const auto& run = job.wanted().run_time;
  return run ? run->elapsed : base::Duration{0};
}

double cpu_seconds_of(const JobRecord& job) {
  const auto& nodes = job.wanted().allocation;
  const double seconds = std::chrono::duration<double>(run_time_of(job)).count();
  return nodes ? seconds * static_cast<double>(nodes->cpus) : 0;
}

const char* cause_of(const JobRecord& job, const sched::StateChange& change) {
  if (const auto& ending = job.wanted().ending) return ending->by ? "preemption" : "user";
  return change.node_failures > job.wanted().node_failures.value_or(0) ? "node" : "pod";
}

}  // namespace

// The statuses of tasks leave out the times that they share with their array.
void JobTotals::started(const JobRecord& job, base::Instant now) {
  const kube::JobStatus& status = job.wanted();
  if (status.starts.value_or(0) != 1 || !status.submit_time) return;
  const base::Instant since =
      std::max(*status.submit_time, status.eligible_time.value_or(*status.submit_time));
  waits_[series_of(job)].count(now - since);
  ++version_;
}

void JobTotals::suspended(sched::Reason cause) {
  if (cause != sched::Reason::kPreempted) return;
  ++preemptions_["suspend"];
  ++version_;
}

void JobTotals::ending(const JobRecord& job, const sched::End& end) {
  if (!end.preemptor || job.wanted().ending) return;
  ++preemptions_[end.verdict == sched::EndingVerdict::kRequeue ? "requeue" : "cancel"];
  preempted_cpu_seconds_ += cpu_seconds_of(job);
  ++version_;
}

// A start that is undone has not run.
void JobTotals::changed(const JobRecord& job, const sched::StateChange& change,
                        const std::string& account) {
  const bool has_ended = sched::is_terminal(change.state);
  const bool requeued = change.restarts != job.wanted().restarts.value_or(0);
  if (has_ended) ++ends_[std::string{kube::to_string(state_of(change.state))}];
  if (requeued) ++requeues_[cause_of(job, change)];
  if (job.wanted().allocation && (has_ended || requeued)) {
    runs_[series_of(job)].count(run_time_of(job));
    account_cpu_seconds_[account] += cpu_seconds_of(job);
  }
  ++version_;
}

}  // namespace control
