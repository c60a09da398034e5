// sshare: shares and usage of accounts and namespaces, from share_rows().
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_sshare(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output);

SlurmReference sshare_reference();

}  // namespace cli
