// `seff`: how much a job has made of the CPUs and the memory that it had. SOURCE: contribs/seff of
// Slurm.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_seff(std::span<const std::string> arguments, const WithCluster& with_cluster,
             Output output);
SlurmReference seff_reference();

}  // namespace cli
