// The table's rows: what `kubectl gang queue` says of each job at an instant
// (view/job_time.h), and how long it has been suspended; nothing is asked of the operator.
#pragma once

#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "base/time.h"
#include "e2e/devcluster/demo/picture.h"

namespace devcluster {

// In the order of the jobs.
std::vector<JobRow> job_rows(const std::vector<kube::Job>& jobs,
                             const std::vector<kube::NodeTimetable>& timetables, base::Instant now);

}  // namespace devcluster
