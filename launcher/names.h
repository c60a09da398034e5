// Slurm's commands by their names, in the pod of a job.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace launcher {

// All but srun, which is the launcher's own.
inline constexpr std::string_view kCommandNames[] = {"sacct",    "salloc",  "sbatch", "scancel",
                                                     "scontrol", "seff",    "sinfo",  "sprio",
                                                     "squeue",   "sreport", "sshare"};
bool is_command(std::string_view name);

// scontrol shows hostnames, hostlist and hostlistsorted without a cluster. All else is done by the
// image's kubectl-gang if the pod can log in to the cluster. If it cannot, scontrol shows and
// requeues the job of this pod; what is left goes to the next program of that name in PATH, and is
// refused if there is none.
int run_command(const std::string& name, std::span<const std::string> arguments);

}  // namespace launcher
