// srun within a job: asks the launcher of its pod for a step, feeds it, shows what it writes, and
// ends as it does.
#pragma once

#include <span>
#include <string>

namespace launcher {

// Returns the highest exit code of the tasks (128 + signal), or 1 with a sentence.
int run_srun(std::span<const std::string> arguments);

}  // namespace launcher
