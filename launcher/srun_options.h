// The command line of srun within a job, and what follows from it and from the job. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/message.h"

namespace launcher {

struct SrunOptions {
  std::optional<int> tasks;      // -n
  std::optional<int> nodes;      // -N, its minimum
  std::optional<int> nodes_max;  // the other end of a range
  std::optional<int> tasks_per_node;
  std::optional<int> cpus_per_task;
  std::string nodelist;                                // -w, or what its file says
  std::string exclude;                                 // -x
  std::optional<int> relative;                         // -r
  Distribution distribution = Distribution::kDefault;  // -m, its first part
  int plane = 1;                                       // -m plane=N
  std::string distribution_within;                     // -m, its parts behind a colon
  Packing packing = Packing::kDefault;                 // -m pack, nopack
  bool is_exact = false;                               // --exact, --exclusive, and -c
  bool overlaps = false;                               // --overlap
  bool is_immediate = false;                           // -I
  bool overcommits = false;                            // -O
  bool has_labels = false;                             // -l
  bool is_unbuffered = false;                          // -u
  bool is_quiet = false;                               // -Q
  bool is_multi_prog = false;                          // --multi-prog
  bool survives_nodes = false;                         // -k
  bool kills_on_bad_exit = false;                      // -K
  int wait_s = 0;                                      // -W; 0: forever
  std::optional<std::chrono::seconds> time_limit;      // -t, of the step
  bool appends = false;                                // --open-mode=append
  std::string output, error, input;                    // -o, -e, -i
  std::string directory;                               // -D
  std::string job_name;                                // -J
  std::string exports = "ALL";                         // --export
  std::string memory;                                  // the option of memory that was given
  std::map<std::string, std::string> variables;        // of the tasks, by options about units
  std::string gpus, gpus_per_node, gres;               // all that the job has (plan_step)
  std::string gpus_per_task;                           // --gpus-per-task
  std::string tasks_per_gpu;                           // --ntasks-per-gpu
  std::string gpu_bind;                                // --gpu-bind
  std::string job_id;                                  // --jobid
  Mpi mpi = Mpi::kNone;                                // --mpi
  std::string mpi_name;                                // as it was named
  bool wants_terminal = false;                         // --pty
  bool quits_on_interrupt = false;  // --quit-on-interrupt: Ctrl-C is meant at once
  bool has_no_status = false;       // -X: the first Ctrl-C goes to the tasks
  bool shows_help = false;
  bool shows_version = false;
  bool lists_mpi = false;     // --mpi=list
  bool counts_named = false;  // nothing says how many nodes the job has: -w does
  std::vector<std::string> command;
};

// Reads the words up to the first that is not an option; it and all behind it are the command.
// kInvalidArgument: an option that does not exist or is not there yet, by its name, or a value that
// makes no sense.
using Variable = std::function<std::optional<std::string>(const std::string& name)>;
base::Result<SrunOptions> read_srun_options(std::span<const std::string> words,
                                            const Variable& variable);

// The request for the job whose variables these are: all of StepRequest but its secret, its
// directory, programs and environment.
struct StepPlan {
  StepRequest request;
  std::vector<std::string> warnings;
  std::vector<std::string> complaints;  // called errors by Slurm, although the step runs
};
// kInvalidArgument: not in this job.
base::Result<StepPlan> plan_step(const SrunOptions& options, const Variable& variable);

// Returns the programs of --multi-prog by rank. kInvalidArgument names the line or the rank.
// SOURCE: srun(1), "MULTIPLE PROGRAM CONFIGURATION".
base::Result<std::vector<std::vector<std::string>>> read_multi_prog(
    std::string_view text, std::uint32_t tasks, std::span<const std::string> arguments);

}  // namespace launcher
