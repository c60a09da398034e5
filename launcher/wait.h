// The first process of the pods that do not run the script.
#pragma once

#include <span>
#include <string>

namespace launcher {

// Runs tasks of the job's steps until the first launcher ends it. Options: --first=NAME
// --ask=PATTERN --asks=COUNT --port=PORT --key=FILE.
int run_wait(std::span<const std::string> arguments);

}  // namespace launcher
