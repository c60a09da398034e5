// `kubectl gang explain JOB`: why a job waits, or where it is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "api/partition.h"
#include "cli/cluster/job_time.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "kube/api/event.h"

namespace cli {

// For people; on a terminal, lines of at most that many columns where names allow it. `partitions`:
// the job's own; `all`: the jobs that may be read.
std::string explanation(const kube::Job& job, const TimetableOf& timetable_of,
                        const std::vector<kube::Partition>& partitions,
                        const std::vector<kube::Job>& all, const std::vector<kube::Event>& events,
                        base::Instant now, std::optional<std::size_t> columns);

int run_explain(const Session& session, const std::string& job, Output output);

}  // namespace cli
