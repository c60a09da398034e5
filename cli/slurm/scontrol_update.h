// scontrol update: what of jobs, nodes and partitions the API can change, under Slurm's names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// `words` behind `update`: "JobId=1001 TimeLimit=20". Returns the exit code.
int run_update(const Session& session, std::span<const std::string> words, Output output);

// Returns the names that it takes, for docs/reference: "job: TimeLimit".
std::vector<std::string> update_reference();

}  // namespace cli
