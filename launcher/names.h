// scontrol as far as it needs no cluster: show hostnames, hostlist and hostlistsorted.
#pragma once

#include <span>
#include <string>

namespace launcher {

// Anything else is passed on to the next scontrol in PATH; without one it is refused by name.
int run_scontrol(std::span<const std::string> arguments);

}  // namespace launcher
