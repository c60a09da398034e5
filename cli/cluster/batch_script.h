// The text of a batch script, as sbatch takes one. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cli {

// The CRD's, of spec.batch.script.
inline constexpr std::size_t kScriptBytesMax = 524'288;

// kInvalidArgument: a text that does not begin with #!, an empty one, one with DOS line breaks, one
// that is not UTF-8, has a zero byte or is too long.
base::Status check_batch_script(std::string_view script);

// kInvalidArgument: a command, which each pod runs, calls srun, mpirun or mpiexec: the job's pods
// are its tasks. In a job of one pod MPI's launchers start their processes beside themselves.
base::Status check_launchers(std::span<const std::string> command, bool has_one_pod);

}  // namespace cli
