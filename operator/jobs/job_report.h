// How the operator speaks of a job in its log and in Kubernetes Events.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>

#include "base/cut_text.h"
#include "operator/jobs/job_record.h"
#include "operator/loop/report.h"

namespace control {

// Returns "job=team-a/train id=7", and `more`.
inline base::LogFields job_fields(const JobRecord& job, base::LogFields more = {}) {
  base::LogFields fields{{"job", kube::to_string(job.key)}, {"id", to_string(job.id)}};
  std::ranges::move(more, std::back_inserter(fields));
  return fields;
}

// Writes a Kubernetes Event: a request to the API server. A start and a good end stand in the
// status and have none; what goes wrong has one, and what is done to the job. Nothing once the
// job's object is gone.
inline void tell_event(const Report& report, const JobRecord& job, bool warning,
                       const std::string& reason, const std::string& message) {
  constexpr std::size_t kEventMessageMax = 1000;
  if (job.deleted) return;
  report.event({.api_version = std::string{kube::kGroup} + "/" + std::string{kube::kGroupVersion},
                .kind = std::string{kube::Job::kResource.kind},
                .ns = job.key.ns,
                .name = job.key.name,
                .uid = job.object_uid(),
                .resource_version = job.status.version()},
               warning, reason, std::string{base::head_of(message, kEventMessageMax)});
}

}  // namespace control
