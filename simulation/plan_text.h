// A plan as text. A plan that is kept stays the same: it names its acts and does not depend on how
// plans are drawn.
//
//     # free text
//     round seed=258 nodes=3 slice=2000ms preempt-mode=Suspend ...
//     job job-0 nodes=2 work=4500ms high=yes ...
//     8250 ms: kill the operator (target 17, 900 ms, amount 4)
//
// Fields that are left out have their default. Events refer to jobs by number, in the order of the
// lines.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "simulation/plan.h"

namespace simulation {

// Writes a plan. parse_plan() of the text gives an equal plan.
std::string to_string(const Plan& plan);

// Reads a plan. kInvalidArgument names the first line that is wrong.
base::Result<Plan> parse_plan(std::string_view text);

}  // namespace simulation
