// Runs programs for tests that look at an exit code and an output.
#pragma once

#include <string>

namespace os::testing {

struct Output {
  int exit_code = -1;  // -1: it could not be started, or a signal ended it
  std::string text;    // stdout and stderr
};

// Runs a command as a shell takes it, without input, and waits for its end.
Output run_shell(const std::string& command);

}  // namespace os::testing
