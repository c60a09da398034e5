// The table's rows: each job's state and run time at an instant, computed from Job objects and
// NodeTimetables as everybody may compute them (architecture.md 2); nothing is asked of the
// operator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "e2e/devcluster/demo/picture.h"
#include "kube/api/job.h"
#include "kube/api/node_timetable.h"
#include "scheduler/base/time.h"

namespace devcluster {

// In the order of the jobs. A job whose pods are in no timetable runs, if it is ready.
std::vector<JobRow> job_rows(const std::vector<kube::Job>& jobs,
                             const std::vector<kube::NodeTimetable>& timetables, base::Instant now);

}  // namespace devcluster
