#include "operator/jobs/job_counts.h"

namespace control {

// Returns where the job is counted; nullopt if it is counted nowhere.
std::optional<JobCounts::Place> JobCounts::place_of(const JobRecord& job) {
  if (!job.wishes->submitted || job.is_final() || job.deleted) return std::nullopt;
  // An array counts as one that waits while tasks of it do; those with records count as jobs.
  if (job.array && !job.array->has_rest()) return std::nullopt;
  const std::string& names = job.wanted().partition;
  const Kind kind = !job.is_allocated()                                ? Kind::kPending
                    : job.wanted().state == kube::JobState::kSuspended ? Kind::kSuspended
                                                                       : Kind::kRunning;
  // A waiting job names all its partitions; it is counted in the first, so that the sum is the
  // number of jobs.
  return Place{kind, names.substr(0, names.find(',')), job.request().qos};
}

void JobCounts::observe_job(const JobRecord& job) {
  const auto place = place_of(job);
  if (!place) return drop_job(job.uid);
  const auto [found, is_new] = jobs_.try_emplace(job.uid, *place);
  if (!is_new) {
    // Most changes of a job are none of its place.
    if (found->second == *place) return;
    add(found->second, -1);
    found->second = *place;
  }
  add(*place, 1);
}

// Called for jobs that were never counted, too.
void JobCounts::drop_job(const std::string& job_uid) {
  if (const auto known = jobs_.extract(job_uid)) add(known.mapped(), -1);
}

// `by` is 1 or -1.
void JobCounts::add(const Place& place, int by) {
  // Sums are kept by differences, so they cost the same with ten jobs and with a hundred thousand.
  changed_ = true;
  auto& [qos_running, qos_pending] = qos_[place.qos];
  // Suspended jobs count as running in a QOS.
  (place.kind == Kind::kPending ? qos_pending : qos_running) += by;
  for (kube::PartitionJobCounts* counts : {&all_, &partitions_[place.partition]}) {
    switch (place.kind) {
      case Kind::kPending:
        counts->pending += by;
        break;
      case Kind::kRunning:
        counts->running += by;
        break;
      case Kind::kSuspended:
        counts->suspended += by;
        break;
    }
  }
}

// Zeros for a partition without jobs, also one that does not exist.
kube::PartitionJobCounts JobCounts::of_partition(const std::string& name) const {
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? kube::PartitionJobCounts{} : found->second;
}

std::pair<int, int> JobCounts::of_qos(const std::string& name) const {
  const auto found = qos_.find(name);
  return found == qos_.end() ? std::pair{0, 0} : found->second;
}

}  // namespace control
