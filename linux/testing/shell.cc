#include "linux/testing/shell.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

namespace os::testing {

// Runs the command with both outputs in one pipe, in the order in which they were written.
Output run_shell(const std::string& command) {
  // The line end before the brace lets the command end in a comment or a here-document.
  FILE* const pipe = ::popen(("{ " + command + "\n} 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return {.text = "popen failed"};
  Output output;
  std::array<char, 65536> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  const int status = ::pclose(pipe);
  // A program that a signal has ended has no exit code (see Output).
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

}  // namespace os::testing
