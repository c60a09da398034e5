// The figures of a simulation as a whole.
#pragma once

#include "scheduler/simulate/what_if.h"

namespace simulate {

// Over [0, end).
Totals count_totals(const Scenario& scenario, const std::vector<JobHistory>& jobs,
                    base::Instant end);

}  // namespace simulate
