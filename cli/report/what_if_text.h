// A what-if simulation for a person: the queue at chosen instants, a strip per job, totals.
#pragma once

#include <span>
#include <string>

#include "scheduler/simulate/what_if.h"

namespace cli {

// Returns the queue as squeue would have shown it at t, below a line with the time.
std::string queue_at(const simulate::Scenario& scenario, const simulate::WhatIf& result,
                     base::Instant t);

// One line per job (at most kStripsMax) over the whole simulated time, 80 columns wide.
inline constexpr std::size_t kStripsMax = 64;
std::string strips(const simulate::Scenario& scenario, const simulate::WhatIf& result);

std::string totals_text(const simulate::Scenario& scenario, const simulate::WhatIf& result);

// Hostlist of a placement's nodes.
std::string node_list(const simulate::Scenario& scenario, const simulate::Placement& placement);

}  // namespace cli
