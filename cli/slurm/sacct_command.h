// sacct, from the Jobs that still exist and, where the cluster keeps them, from the records of all.
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
