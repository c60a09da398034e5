// The figures of a simulation as a whole.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/simulate/what_if.h"

namespace simulate {

// How a job was served that has ended.
struct Service {
  base::Duration response{};  // submission to end
  base::Duration run{};       // of its last start: the time that it ran
  // Bounded slowdown, in thousandths (see Totals).
  std::int64_t slowdown_milli() const;
};
// Returns nullopt if it has not started, or not ended.
std::optional<Service> service_of(const JobHistory& job);

// Over [0, end).
Totals count_totals(const Scenario& scenario, const std::vector<JobHistory>& jobs,
                    base::Instant end);

}  // namespace simulate
