// The pods of a job that timetables list.
#pragma once

#include <optional>

#include "operator/jobs/job_record.h"
#include "translation/timetable_translation.h"

namespace control {

// nullopt if its pods must not be frozen, and so not be listed: `job` is null, something in them
// does not go with being frozen, or pods of its start may wait in an init container for others.
inline std::optional<ListedJob> listed_job(const JobRecord* job) {
  if (job == nullptr || job->gang->never_frozen || job->gang->awaits_init) return std::nullopt;
  return ListedJob{
      .ns = job->key.ns, .uid = job->object_uid(), .slots = job->start->slots, .task = job->task};
}

}  // namespace control
