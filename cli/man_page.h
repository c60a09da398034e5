// Manual pages, from the same table as --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

// kubectl-gang(1), or kubectl-gang-COMMAND(1), in roff. `app` has all commands; "" = the first one.
// "" when there is no such command.
std::string man_page(CLI::App& app, const std::string& command);

}  // namespace cli
