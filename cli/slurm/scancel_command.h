// scancel: jobs by number, name, user, state, partition and node list.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_scancel(std::span<const std::string> arguments, const WithCluster& with_cluster,
                Output output);

SlurmReference scancel_reference();

}  // namespace cli
