// Standing: the scheduler's own view of priorities and shares, built from what the API server
// holds: the accepted policies, the nodes, the waiting jobs and the operator's UsageRecord. `prio`
// and `share` ask it, so nothing must be written for them. Usage is as of the record: what
// running jobs have used since is in the next one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "scheduler/scheduler.h"

namespace cli {

struct Standing {
  sched::Configuration configuration;
  sched::Scheduler scheduler{sched::Options{}};
  std::vector<kube::Job> waiting;  // in the order of their numbers
};

// `jobs_of`: the namespace whose waiting jobs are read, "" for all; nullopt if only shares are
// asked for. Nodes are read with jobs; kPermissionDenied if there are weights of sizes and the user
// may not list nodes.
base::Result<Standing> read_standing(const Session& session,
                                     const std::optional<std::string>& jobs_of, Output output);

}  // namespace cli
