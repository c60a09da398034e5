// `sreport`: what users, accounts and the cluster have used, from records.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sreport(std::span<const std::string> arguments, const WithCluster& with_cluster,
                Output output);
SlurmReference sreport_reference();

}  // namespace cli
