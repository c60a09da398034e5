// What a reader of the page asks: when and where would such a job start, and which jobs would stop
// for it? Asked as `whatif` asks (whatif.h), with the reader's rights.
#pragma once

#include <string>
#include <string_view>

#include "api/job.h"
#include "base/result.h"
#include "cli/cluster/session.h"
#include "slurm/quantities.h"

namespace cli {

// Reads {"ns": …, "nodes": "4", "time": "2:00:00", "partition": …, "qos": …, "cpus": …, "gpus": …},
// of which only ns must not be empty. Each is a text as sbatch takes it; cpus and gpus are those of
// each node. kInvalidArgument names the option. Pure.
base::Result<kube::Job> read_page_question(std::string_view text, slurm::Now now);

// Asks the operator. Returns the answer as JSON; the errors of read_page_question(), of
// ask_operator() and of the API server.
base::Result<std::string> page_whatif(const Session& session, std::string_view text);

}  // namespace cli
