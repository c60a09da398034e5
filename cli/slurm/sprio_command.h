// sprio: what makes up the priorities of jobs that wait, from prio_lines().
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sprio(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output);

SlurmReference sprio_reference();

}  // namespace cli
