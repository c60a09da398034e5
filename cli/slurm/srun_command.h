// srun outside of a job: makes one and runs a step in it, or runs a step in one that is there.
// Within a pod of a batch script srun is the launcher's (launcher/srun.h).
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/words.h"

namespace cli {

int run_srun(std::span<const std::string> arguments, const WithCluster& with_cluster,
             Output output);

}  // namespace cli
