// A trace's jobs as jobs of a scenario, which says on which cluster and under which configuration
// they are played.
#pragma once

#include <optional>

#include "base/result.h"
#include "cli/workload/swf.h"
#include "scheduler/simulate/scenario.h"

namespace cli {

// Adds the jobs behind those that the scenario has, and their submissions to its inputs.
//
//   processors                  --ntasks, each of one CPU
//   requested time              --time, rounded up to a minute; else the partition's default
//   requested memory            --mem-per-cpu
//   run time                    how long it works, at least a second
//   user 4, group 2, queue 7    user4; account group2 and partition queue7 if the scenario has them
//
// Left out are parts of jobs, jobs whose run time or processors are not known, and jobs of more
// CPUs than their partition has; a warning of the scenario counts them. `load`: submit times are
// stretched or pressed until run time × processors of all jobs, divided by the cluster's CPUs and
// the time to the last submission, is that. kInvalidArgument: a user is not among the scenario's
// users; there is nothing to scale.
base::Status add_trace(const SwfTrace& trace, std::optional<double> load,
                       simulate::Scenario& scenario);

}  // namespace cli
