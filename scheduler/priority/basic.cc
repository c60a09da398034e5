#include "scheduler/priority/basic.h"

#include <algorithm>

#include "scheduler/priority/priority_range.h"

namespace sched {

// R9.2: the counter falls by one for each job, so earlier jobs stay ahead. Nice moves this job
// alone. At the bottom of the range all new jobs get 1, since 0 means held (R9.1).
Priority BasicPriorities::next(const JobRequest& request) {
  if (request.priority) return *request.priority;
  lowest_ = clamped_priority(std::int64_t{lowest_.value()} - 1);
  return clamped_priority(std::int64_t{lowest_.value()} - request.nice);
}

// After a change of leader new jobs must come behind those that had their numbers before. A
// priority that was given by hand says nothing about the counter, nor does one that nice has raised
// beyond the range.
void BasicPriorities::restore(const JobRequest& request, Priority priority) {
  const bool is_cut = request.nice < 0 && priority.value() == kPriorityMax;
  if (request.priority || is_cut) return;
  lowest_ = std::min(lowest_, clamped_priority(std::int64_t{priority.value()} + request.nice));
}

// Returns the priority as if the job had been submitted with the other nice value. 0 is a hold and
// stays one.
Priority BasicPriorities::with_nice(Priority priority, int before, int after) {
  if (before == after || priority.value() == 0) return priority;
  return clamped_priority(std::int64_t{priority.value()} + before - after);
}

}  // namespace sched
