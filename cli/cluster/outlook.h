// When a job that waits is expected to start, and what it waits for: from its status, and from
// those of the jobs before it and of the jobs that run where it is to start. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/partition.h"
#include "base/time.h"

namespace cli {

// A label and a sentence each.
using Lines = std::vector<std::pair<std::string, std::string>>;

// None of a job that does not wait. `all`: every job that may be read, the job itself too.
// `partitions`: the job's own, for the time limits that they set.
Lines outlook(const kube::Job& job, const std::vector<kube::Job>& all,
              const std::vector<kube::Partition>& partitions, base::Instant now);

}  // namespace cli
