// sbatch: submits a batch script from inside the cluster, with the variables and the working
// directory of who calls it, and prints its number.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sbatch(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output);

}  // namespace cli
