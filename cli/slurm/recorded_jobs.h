// Jobs that exist and what kubegang-records remembers of those that do not, as sacct shows both.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/records.h"
#include "cli/slurm/array_parts.h"
#include "records/record.h"

namespace cli {

// A line of sacct, as of one of these.
struct AccountedJob {
  JobPart part;
  std::optional<records::RecordState> state{};  // of a record
};

// Returns the jobs that exist and records, each run once, in the order of their numbers. If a run
// has both, the record counts once the run has ended, since it knows more of tasks. Without
// `has_duplicates` a job has only its last run.
std::vector<AccountedJob> join_records(std::vector<JobPart> existing,
                                       const std::vector<records::Record>& recorded,
                                       bool has_duplicates);

}  // namespace cli
