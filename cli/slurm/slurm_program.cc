#include "cli/slurm/slurm_program.h"

#include <algorithm>
#include <array>

#include "cli/cluster/connect.h"
#include "cli/slurm/sacct_command.h"
#include "cli/slurm/salloc_command.h"
#include "cli/slurm/sbatch_command.h"
#include "cli/slurm/scancel_command.h"
#include "cli/slurm/scontrol_command.h"
#include "cli/slurm/seff_command.h"
#include "cli/slurm/sinfo_command.h"
#include "cli/slurm/sprio_command.h"
#include "cli/slurm/squeue_command.h"
#include "cli/slurm/sreport_command.h"
#include "cli/slurm/srun_command.h"
#include "cli/slurm/sshare_command.h"

namespace cli {
namespace {

using Run = int (*)(std::span<const std::string>, const WithCluster&, Output);

struct Command {
  std::string_view name;
  Run run;
};

constexpr std::array kCommands = {
    Command{"sacct", run_sacct},       Command{"salloc", run_salloc},
    Command{"sbatch", run_sbatch},     Command{"scancel", run_scancel},
    Command{"scontrol", run_scontrol}, Command{"seff", run_seff},
    Command{"sinfo", run_sinfo},       Command{"sprio", run_sprio},
    Command{"squeue", run_squeue},     Command{"sreport", run_sreport},
    Command{"srun", run_srun},         Command{"sshare", run_sshare}};

}  // namespace

bool is_slurm_command(std::string_view name) {
  return std::ranges::find(kCommands, name, &Command::name) != kCommands.end();
}

// The cluster is the one of KUBECONFIG, or of the pod; --clusters names a context. "all" is what
// scripts say that know one cluster alone.
int run_slurm_command(std::string_view name, std::span<const std::string> arguments,
                      const WithSession& with_session, Output output) {
  const WithCluster with_cluster{[&](const std::string& context, const WithCluster::Use& use) {
    ConnectOptions connect;
    if (context != "all") connect.overrides.context = context;
    const base::Result<int> code = with_session(connect, use);
    if (code) return *code;
    output.err << name << ": error: " << code.error().message << "\n";
    return kExitFailed;
  }};
  return std::ranges::find(kCommands, name, &Command::name)->run(arguments, with_cluster, output);
}

}  // namespace cli
