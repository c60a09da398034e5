// The operator as a process: connections, leader election, informers, writers, the loop, health.
// The only place in operator/ that has threads.
#pragma once

#include "operator/process/options.h"

namespace control {

// Runs until SIGTERM or SIGINT (0) or a failure (1), which it prints as a sentence.
int run_process(const Options& options);

}  // namespace control
