// When a job that waits is expected to start, and what it waits for: from its status, and from
// those of the jobs before it and of the jobs that run where it is to start. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/partition.h"
#include "base/time.h"

namespace cli {

// A label and a sentence each.
using Lines = std::vector<std::pair<std::string, std::string>>;

// Returns the time limit of a job that has nodes: what its status says, where an operator has
// judged it, for the backfill may have started it with less than its spec asks for. nullopt: none.
std::optional<base::Duration> limit_in_force(const kube::Job& job);

// Returns "2026-01-01T00:10:00Z, in 10:00"; without the second part if that is past.
std::string when(base::Instant at, base::Instant now);

// None of a job that does not wait. `all`: every job that may be read, the job itself too.
// `partitions`: the job's own, for the time limits that they set.
Lines outlook(const kube::Job& job, const std::vector<kube::Job>& all,
              const std::vector<kube::Partition>& partitions, base::Instant now);

}  // namespace cli
