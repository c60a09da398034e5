// Slurm's spelling of licenses: --licenses of sbatch, Licenses of slurm.conf. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scheduler/model/licenses.h"

namespace slurm {

// Parses "foo:2,bar" or "foo=2;bar", as Slurm 22.05 reads it: a name without a count stands for
// one, and a name that comes twice counts twice. `what` begins the message: "--licenses".
base::Result<sched::Licenses> parse_licenses(std::string_view what, std::string_view text);

}  // namespace slurm
