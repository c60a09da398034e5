// Priorities: the priority of a job by the rule of priority/basic (9): each new job gets one less
// than the job before it. Another rule (multifactor, fair share) takes this class's place.
#pragma once

#include <cstdint>

#include "scheduler/model/job.h"

namespace sched {

class BasicPriorities {
 public:
  // Returns the priority of a job that is submitted or released. A priority that the request names
  // counts for this job alone, and so does its nice: later jobs do not get less because of it
  // (R9.2, recording queue_hold_release_backfill).
  Priority next(const JobRequest& request);
  // Restores a job that another scheduler gave this priority, its nice included: later ones get
  // less, as they would if neither had a nice value.
  void restore(const JobRequest& request, Priority priority);
  // Raises or lowers the priority by the difference of the nice values `before` and `after`, but
  // not to 0, which means held (R9.2).
  static Priority with_nice(Priority priority, int before, int after);

 private:
  Priority lowest_{0xffff0000U};
};

}  // namespace sched
