// `kubectl-gang simulate FILE`.
#pragma once

#include <string>
#include <vector>

#include "cli/program.h"

namespace cli {

struct SimulateOptions {
  std::string file;
  bool json = false;
  std::vector<std::string> at;  // instants at which the queue is shown, in seconds
  std::string svg;              // file to write the picture to; empty = none
};

int run_simulate(const SimulateOptions& options, Output output);

}  // namespace cli
