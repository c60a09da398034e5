// sacct, from the Jobs that still exist: nothing remains of one that was deleted.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sacct(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output);

SlurmReference sacct_reference();

}  // namespace cli
