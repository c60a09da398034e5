// salloc: a job without a script, and a command here that may call srun in it.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/words.h"

namespace cli {

int run_salloc(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output);

}  // namespace cli
