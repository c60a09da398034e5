#include "cli/slurm/slurm_program.h"

#include <algorithm>
#include <array>

#include "cli/cluster/connect.h"
#include "cli/slurm/sbatch_command.h"
#include "cli/slurm/scancel_command.h"
#include "cli/slurm/scontrol_command.h"
#include "cli/slurm/squeue_command.h"

namespace cli {
namespace {

using Run = int (*)(std::span<const std::string>, const WithCluster&, Output);

struct Command {
  std::string_view name;
  Run run;
};

constexpr std::array kCommands = {Command{"sbatch", run_sbatch}, Command{"scancel", run_scancel},
                                  Command{"scontrol", run_scontrol}, Command{"squeue", run_squeue}};

}  // namespace

bool is_slurm_command(std::string_view name) {
  return std::ranges::find(kCommands, name, &Command::name) != kCommands.end();
}

// Slurm's commands have no options for the cluster: it is the one of KUBECONFIG, or of the pod.
int run_slurm_command(std::string_view name, std::span<const std::string> arguments,
                      const WithSession& with_session, Output output) {
  const WithCluster with_cluster = [&](const std::function<int(const Session&)>& use) {
    const base::Result<int> code = with_session(ConnectOptions{}, use);
    if (code) return *code;
    output.err << name << ": error: " << code.error().message << "\n";
    return kExitFailed;
  };
  return std::ranges::find(kCommands, name, &Command::name)->run(arguments, with_cluster, output);
}

}  // namespace cli
