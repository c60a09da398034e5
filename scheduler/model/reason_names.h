// The names of reasons, as squeue shows them (2.4).
#pragma once

#include <optional>
#include <string_view>

#include "scheduler/model/job.h"

namespace sched {

// Returns "JobHeldUser".
std::string_view name_of(Reason reason);
// Returns nullopt if no reason has that name.
std::optional<Reason> parse_reason(std::string_view name);

}  // namespace sched
