// loss/* and slurm_way/*: two gangs with a busy task on every CPU take turns; what that costs,
// measured by the tasks themselves, against the same work between two switches, where one of them
// runs alone (lost_work.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/time.h"

namespace agent::bench {

// {"name", "lost_percent", "noise_percent", "overlap_us_total"}: time of the CPUs in which no task
// ran because of switches, and how much of that may be chance; and for how long tasks of both gangs
// were seen running at once. `total`: of the measurement, at least two slices.
nlohmann::ordered_json measure_loss(const std::string& name, base::Duration slice,
                                    base::Duration total);

// The same when the gangs are switched as Slurm does it: SIGTSTP to the outgoing tasks, the
// incoming ones go on at once, and 2 s later the outgoing ones are frozen, without looking whether
// they are. `ignores_sigtstp`: programs that do not stop at SIGTSTP, such as the first process of a
// container. SOURCE: slurm.conf(5) SuspendMode of gang scheduling; proctrack/cgroup.
nlohmann::ordered_json measure_slurm_way(const std::string& name, base::Duration slice,
                                         base::Duration total, bool ignores_sigtstp);

}  // namespace agent::bench
