// sinfo: partitions and the states of their nodes.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sinfo(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output);

SlurmReference sinfo_reference();

}  // namespace cli
