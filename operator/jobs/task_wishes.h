// What is wished for single tasks of an array (spec.control.tasks), and their requests. No state of
// its own: entries that were read, and what the scheduler was told, stand in the array's record.
#pragma once

#include <map>
#include <set>

#include "api/job.h"
#include "operator/jobs/job_record.h"
#include "scheduler/event.h"

namespace control {

// Of the entries that name a task the last one that has a field counts.
kube::TaskControl wish_for(JobRecord& array, int task);
// The tasks that an entry names; some may not exist, or have ended.
std::set<int> named_tasks(JobRecord& array);

// Of the tasks that have not ended, those for which something differs from the request of the
// array.
std::map<int, sched::TaskTerms> terms_of_tasks(JobRecord& array);
// The array's request, with what the scheduler was told of this task.
sched::JobRequest request_of_task(const JobRecord& array, int task);

}  // namespace control
