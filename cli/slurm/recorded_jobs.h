// What kubegang-records remembers of jobs, for sacct: asked through the API server, which decides
// who may see what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/session.h"
#include "cli/slurm/array_parts.h"
#include "records/record.h"

namespace cli {

struct RecordQuery {
  base::Instant from{};
  base::Instant until{};
  std::string user{};                // "" = all; with the records that name no user
  std::vector<std::int64_t> jobs{};  // numbers of jobs or arrays; empty = all
};

struct RecordedJobs {
  std::vector<records::Record> records;
  std::optional<base::Instant> since{};  // absent: the cluster keeps no records
};

// Of all namespaces, or of the session's own if the others may not be read. A cluster without
// records has none; an error: it has, and they cannot be read.
base::Result<RecordedJobs> read_records(const Session& session, const RecordQuery& query);

// A line of sacct, as of one of these.
struct AccountedJob {
  JobPart part;
  std::optional<records::RecordState> state{};  // of a record
};

// Jobs that exist and records, each run once, in the order of their numbers. Of a run that has both
// the record counts once it has ended, since it knows more of tasks. Without `has_duplicates` a job
// has only its last run.
std::vector<AccountedJob> join_records(std::vector<JobPart> existing,
                                       const std::vector<records::Record>& recorded,
                                       bool has_duplicates);

}  // namespace cli
