#include "operator/jobs/unseen_jobs.h"

namespace control {

void UnseenJobs::observe(const kube::Job& job, std::int64_t recorded) {
  if (!job.status.state || !job.status.job_id) return;
  const auto version = kube::version_number(job.metadata.resource_version);
  if (!version || *version <= recorded) return;
  if (unrecorded_.try_emplace(job.metadata.uid, *version).second) {
    by_first_.emplace(*version, job.metadata.uid);
  }
}

void UnseenJobs::gone(const std::string& uid, std::int64_t version) {
  const auto found = unrecorded_.find(uid);
  if (found == unrecorded_.end()) return;
  gone_.push_back({.first = found->second, .gone = version});
  by_first_.erase({found->second, uid});
  unrecorded_.erase(found);
}

// A watcher since a version has seen the jobs that existed then, and those that came later.
void UnseenJobs::answered(const kube::RecordedVersions& said) {
  std::erase_if(gone_, [&](const Life& life) {
    const bool was_missed = life.gone <= said.since;
    count_ += was_missed ? 1 : 0;
    return was_missed || life.first <= said.version;
  });
  while (!by_first_.empty() && by_first_.begin()->first <= said.version) {
    unrecorded_.erase(by_first_.begin()->second);
    by_first_.erase(by_first_.begin());
  }
}

}  // namespace control
