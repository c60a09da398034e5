// Slurm's commands under their own names: one program that is called as sbatch, squeue, sinfo and
// so on, or as `kubectl gang squeue …`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/program.h"

namespace cli {

bool is_slurm_command(std::string_view name);

// REQUIRES: is_slurm_command(name). `arguments` without the program's name. Returns the exit code,
// which is Slurm's.
int run_slurm_command(std::string_view name, std::span<const std::string> arguments,
                      const WithSession& with_session, Output output);

}  // namespace cli
