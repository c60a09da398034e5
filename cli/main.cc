#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/connect.h"
#include "cli/files.h"
#include "cli/program.h"

namespace {

// Opens the connection for a command and closes it after. Tests put their own API server in this
// place.
base::Result<int> with_session(const cli::ConnectOptions& options,
                               const std::function<int(const cli::Session&)>& use) {
  const base::Result<std::unique_ptr<cli::Connection>> connection = cli::Connection::open(options);
  if (!connection) return connection.error();
  return use((*connection)->session());
}

// Returns the width of standard output; nullopt if it is not a terminal, or one that does not tell.
std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace

int main(int argc, char** argv) {
  // All else is in run_program(), which tests call with streams of their own.
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  const int code = cli::run_program(
      arguments, with_session, {.out = std::cout, .err = std::cerr, .columns = terminal_columns()});
  const int error = cli::flush_output(std::cout, stdout);
  if (error == 0) return code;
  // Ends as kubectl and most tools do: quietly, by the signal, which the client has switched off.
  if (error == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  std::cerr << "kubectl-gang: write to standard output: " << std::strerror(error) << "\n";
  return code == cli::kExitOk ? cli::kExitFailed : code;
}
