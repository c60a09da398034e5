// The program: its threads and its life.
#pragma once

#include "records/options.h"

namespace records {

// Returns the exit code, after SIGTERM or SIGINT.
int run_process(const Options& options);

}  // namespace records
