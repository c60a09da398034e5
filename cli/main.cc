#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "cli/cluster/connect.h"
#include "cli/files.h"
#include "cli/program.h"
#include "cli/slurm/slurm_program.h"

namespace {

// Opens the connection for a command and closes it after. Tests put their own API server in this
// place.
base::Result<int> with_session(const cli::ConnectOptions& options,
                               const std::function<int(const cli::Session&)>& use) {
  const base::Result<std::unique_ptr<cli::Connection>> connection = cli::Connection::open(options);
  if (!connection) return connection.error();
  return use((*connection)->session());
}

// Returns the width of standard output; nullopt if it is not a terminal, or its width is unknown.
std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace

int main(int argc, char** argv) {
  base::open_closed_streams();
  // All else is in run_program(), which tests call with streams of their own.
  std::vector<std::string> arguments{argv + 1, argv + argc};
  // A link whose name is one of Slurm's commands is that command.
  const std::string path = argc > 0 ? argv[0] : "";
  const std::string name = path.substr(path.rfind('/') + 1);
  if (cli::is_slurm_command(name)) arguments.insert(arguments.begin(), name);
  const cli::Output output{.out = std::cout, .err = std::cerr, .columns = terminal_columns()};
  const bool is_slurm = !arguments.empty() && cli::is_slurm_command(arguments.front());
  const int code = is_slurm
                       ? cli::run_slurm_command(arguments.front(), std::span{arguments}.subspan(1),
                                                with_session, output)
                       : cli::run_program(arguments, with_session, output);
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
