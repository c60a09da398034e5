// Translates changes of a Job into changes of its records. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/job.h"
#include "records/record.h"

namespace records {

// The record as it is now, whole.
struct Written {
  Record record;
  // The usage of the run before, for the record of a job that waits again.
  std::optional<kube::JobUsage> used_before{};
};
// A task of an array has ended, and nothing but that is known. Its record says how, and who; where
// it ran is known only if it was written before.
struct TaskEnded {
  Record record;
};
// The object is gone. Records that have not ended end now.
struct JobGone {
  std::string cluster;
  std::string job_uid;
  bool is_seen = true;  // false: it went unwatched
  base::Instant at{};
};
using Change = std::variant<Written, TaskEnded, JobGone>;

// Sets the fields of a record that say what it has used.
void set_usage(Record& record, const std::optional<kube::JobUsage>& usage);

// `before`: what was seen of the object last; null: nothing. `seen_at`: when `now` came, which is
// the end of tasks that say none. Cost: the tasks of an array.
std::vector<Change> changes_of(const kube::Job* before, const kube::Job& now,
                               const std::string& cluster, base::Instant seen_at);

}  // namespace records
