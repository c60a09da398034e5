// `kubectl-gang simulate FILE`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"

namespace cli {

struct SimulateOptions {
  std::string file;
  bool json = false;
  std::vector<std::string> at;  // instants at which the queue is shown, in seconds
  std::string svg;              // file to write the picture to; empty = none
  std::string swf;              // trace whose jobs are submitted too; empty = none
  std::optional<double> load;   // of the trace, which is stretched to it; nothing = as it is
};

int run_simulate(const SimulateOptions& options, Output output);

}  // namespace cli
