// The first process of a pod of a batch script.
#pragma once

#include <span>
#include <string>

namespace launcher {

// The name of the file, held open by the launcher, that has the address of the steps.
inline constexpr const char* kStepsFile = "kubegang-steps";

// Runs the script in its environment and returns as it ends: its exit code, or 128 + the signal
// that ended it. It keeps a socket for srun, reaps what the script leaves, and passes signals on.
int run_batch(std::span<const std::string> arguments);

}  // namespace launcher
