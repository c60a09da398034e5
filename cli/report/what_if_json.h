// A what-if simulation for programs.
#pragma once

#include <span>
#include <string>

#include "scheduler/simulate/what_if.h"

namespace cli {

// {"scenario", "jobs": {LABEL: {state, restarts, submit, end, runSeconds, preempted, placements:
// […]} and, while it waits, reason and message}, "queues": [{t, jobs: […]}] (one per instant in
// `at`), "totals": {…}}; times in seconds.
std::string what_if_json(const simulate::Scenario& scenario, const simulate::WhatIf& result,
                         std::span<const base::Instant> at);

}  // namespace cli
