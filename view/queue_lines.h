// Jobs as lines of a queue, from objects alone: `queue`, the page and its tests show the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "kube/api/known_fields.h"
#include "view/job_time.h"

namespace view {

// Returns the Job of the batch group that controls it, "" if none does.
std::string batch_job_of(const kube::Job& job);

// How many pods of a job whose pods follow one another have succeeded, of how many.
struct Progress {
  std::int64_t succeeded = 0;
  std::int64_t completions = 0;
};
// nullopt: its pods do not, so either all have succeeded or the job has not.
std::optional<Progress> progress_of(const kube::Job& job);

struct QueueLine {
  std::string job_id;  // empty before an operator has seen it
  std::string partition;
  std::string name;       // of an attempt at a Job of the batch group: that Job's, as job/NAME
  std::string job_name;   // the object's
  std::string batch_job;  // whose attempt it is; empty = none
  std::string user;       // the namespace
  JobMoment moment;
  int nodes = 0;
  std::string hostlist;  // that it has; empty = none
  std::string reason;    // why it waits; empty = it has nodes
  std::int64_t priority = 0;
  std::optional<Progress> progress;             // of a job whose pods follow one another
  std::optional<base::Instant> expected_start;  // of a job that waits, if it is known
  std::string planned_nodes;                    // likewise
};

// Returns the fields of a Job that its line needs; job_moment() and is_called() read no more.
const kube::KnownFields& fields_of_queue();

// Returns the jobs that are not finished, in squeue's order: partition, waiting before running
// before suspended, higher priority first, then by id.
std::vector<QueueLine> queue_lines(const std::vector<std::shared_ptr<const kube::Job>>& jobs,
                                   const TimetableOf& timetable_of, base::Instant now);

}  // namespace view
