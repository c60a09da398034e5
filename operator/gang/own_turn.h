// When a gang whose pods follow one another may make the next one. A pod that has been made runs
// until it has settled, whichever gang's turn it is. A gang whose pods live shorter than that would
// run all the time, so its next pod is made in a turn of its own that lasts until it has settled.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "api/node_timetable.h"
#include "base/time.h"

namespace control {

// Returns the first instant from `now` on at which the job's turn by the timetable goes on for
// `settle`, or for half a slice if that is less: no slice might be as long as pods take to settle.
// kNever if it has no such turn; nullopt if the timetable does not list the job.
std::optional<base::Instant> next_turn_to_settle_in(const kube::NodeTimetableSpec& spec,
                                                    const std::string& job_uid, base::Instant now,
                                                    base::Duration settle);

}  // namespace control
