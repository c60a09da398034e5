// Puts this program into a folder, under all its names.
#pragma once

#include <string>

namespace launcher {

// Returns 0, or 1 with a sentence on standard error. With `has_commands` also kubectl-gang with its
// libraries, 22 MB, which Slurm's other names need.
int install(const std::string& directory, bool has_commands);

}  // namespace launcher
