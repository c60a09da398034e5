// `kubectl gang import FILE…`: Slurm's configuration as YAML of our kinds.
#pragma once

#include <string>
#include <vector>

#include "cli/program.h"

namespace cli {

// YAML on stdout; what it leaves out on stderr, line by line.
int run_import(const std::vector<std::string>& files, Output output);

}  // namespace cli
