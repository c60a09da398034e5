#include <iostream>
#include <string>
#include <vector>

#include "cli/cluster/connect.h"
#include "cli/program.h"

namespace {

base::Result<int> with_session(const cli::ConnectOptions& options,
                               const std::function<int(const cli::Session&)>& use) {
  const base::Result<std::unique_ptr<cli::Connection>> connection = cli::Connection::open(options);
  if (!connection) return connection.error();
  return use((*connection)->session());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  const int code = cli::run_program(arguments, with_session, {.out = std::cout, .err = std::cerr});
  std::cout.flush();
  return code;
}
