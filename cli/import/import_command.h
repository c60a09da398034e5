// `kubectl gang import FILE…`: Slurm's configuration as YAML of our kinds.
#pragma once

#include <string>
#include <vector>

#include "cli/program.h"

namespace cli {

struct ImportOptions {
  std::vector<std::string> files;
  bool strict = false;  // exit code 2 for a parameter without effect, too
};

// An object of the files is not among the output's.
inline constexpr int kExitLossy = 2;

// YAML on stdout; what it leaves out on stderr, line by line.
int run_import(const ImportOptions& options, Output output);

}  // namespace cli
