// kubectl-gang as a function: arguments in, text out, exit code back. main() only calls it, tests
// call it too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "base/result.h"

namespace cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // what was asked for failed, with a sentence on `err`
inline constexpr int kExitUsage = 2;   // the command line is wrong

// The streams of a command.
struct Output {
  std::ostream& out;
  std::ostream& err;
  std::optional<std::size_t> columns{};  // of the terminal that `out` is; nullopt: not a terminal
};

struct ConnectOptions;
struct Session;
// Calls `use` with a session on the cluster that the options name, and returns what it returns. The
// seam for tests: main() gives one that connects over HTTPS.
using WithSession = std::function<base::Result<int>(const ConnectOptions& options,
                                                    const std::function<int(const Session&)>& use)>;

// `arguments` without the program's name.
int run_program(std::span<const std::string> arguments, const WithSession& with_session,
                Output output);

}  // namespace cli
