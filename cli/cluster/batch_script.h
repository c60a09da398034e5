// A batch script as a pod's command: its text is handed to the interpreter that its first line
// names, so it needs no file in the image. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cli {

// One argument of a program may not be longer (Linux, MAX_ARG_STRLEN, with its final zero byte).
inline constexpr std::size_t kScriptArgumentBytesMax = 131'071;

// {"/bin/bash", "-c", script, name, arguments…}; the name, a shell's $0, stands there only for
// shells. kInvalidArgument: a text that does not begin with #!, an interpreter that is not known to
// take a program as an argument, a script that is too long, or a zero byte.
base::Result<std::vector<std::string>> script_command(std::string_view script,
                                                      const std::string& name,
                                                      std::span<const std::string> arguments);

// kInvalidArgument: the command, or the script in it, calls srun, mpirun or mpiexec: the job's pods
// are its tasks, there is nothing to launch them with. In a job of one pod MPI's launchers start
// their processes beside themselves.
base::Status check_launchers(std::span<const std::string> command, bool has_one_pod);

}  // namespace cli
