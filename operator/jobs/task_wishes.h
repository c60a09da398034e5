// Wishes for single tasks of an array (spec.control.tasks), and their requests. No state of its
// own: the array's record holds the entries that were read, and what the scheduler got.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "api/job.h"
#include "operator/jobs/job_record.h"
#include "scheduler/event.h"

namespace control {

// Merges the entries that name a task: the last one that has a field counts.
kube::TaskControl wish_for(JobRecord& array, int task);
// Returns the tasks that an entry names; some may not exist, or have ended.
std::set<int> named_tasks(JobRecord& array);

// Returns the terms of tasks that have not ended and differ from the request of the
// array.
std::map<int, sched::TaskTerms> terms_of_tasks(JobRecord& array);
// Returns the tasks that have not ended and are held, or to be canceled, while the array is not.
std::set<int> held_tasks(JobRecord& array);
// Returns the array's request with the terms and the hold of this task, as the scheduler got them.
sched::JobRequest request_of_task(const JobRecord& array, int task);
// Compares what may differ between the tasks of an array.
bool has_terms_of(const sched::JobRequest& a, const sched::JobRequest& b);
// Returns the request with the terms of `from`, and nothing else of it; itself if it has them.
std::shared_ptr<const sched::JobRequest> with_terms_of(
    const std::shared_ptr<const sched::JobRequest>& request, const sched::JobRequest& from);

}  // namespace control
