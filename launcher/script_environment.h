// The variables of a batch script, and of what is started beside it from outside of the job.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "launcher/process.h"

namespace launcher {

// Names of variables in KUBEGANG_JOB begin with this, which is left out there.
inline constexpr std::string_view kNamesBegin = "SLURM";

// PREFIX_0, PREFIX_1, … together, as the operator has put them into the pod's environment.
std::string joined(const Environment& environment, const std::string& prefix);

// 1. what the image and the operator give the pod, without what is only for this program
// 2. the variables of who submitted the job, then `more`; but what the operator says of the job
//    stays
// 3. what Slurm adds for a script, and where srun is: `steps` is the server's address
Environment script_environment(const Environment& given, std::span<const std::string> more,
                               const std::string& directory, const std::string& steps);

}  // namespace launcher
