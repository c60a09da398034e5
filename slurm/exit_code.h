// The exit codes with which Slurm's commands end if their command line is wrong.
#pragma once

#include "base/result.h"

namespace slurm {

// An error at which they end with 1: a count that is not a number, a dependency, a request that no
// node could serve. At all other wrong options they end with 255. SOURCE: recorded.
inline constexpr base::Code kEndsWithOne = base::Code::kNotFound;

inline int exit_code_of(const base::Error& error) {
  constexpr int kWrongOption = 255;
  return error.code == kEndsWithOne ? 1 : kWrongOption;
}

}  // namespace slurm
