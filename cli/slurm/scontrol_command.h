// scontrol: shows jobs, nodes, partitions and hostlists, and changes them.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_scontrol(std::span<const std::string> arguments, const WithCluster& with_cluster,
                 Output output);

SlurmReference scontrol_reference();

}  // namespace cli
