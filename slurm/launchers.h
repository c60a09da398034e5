// The programs that start a job's tasks in Slurm and in MPI: srun, mpirun, mpiexec, orterun. A pod
// is a task already, and has no Slurm: a job whose script calls one of them waits for its nodes and
// fails in its first second. One rule for scripts that are submitted and for commands of pods.
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slurm {

// Returns "bash" for "/usr/bin/bash", "python" for "python3.11": no folder and no version.
std::string_view program_name(std::string_view path);
// True for every name that ends in "sh": whatever shell it is, it would call srun in the same way.
bool is_shell(std::string_view program_name);

struct LauncherCall {
  std::string_view launcher{};  // the program's name, for as long as the program lives
  std::size_t line = 0;         // of the script, from 1; 0 = the words themselves are the call
};
// Returns the first call in the text of a shell script. A word in a comment, or as an argument of
// another program, is none.
std::optional<LauncherCall> launcher_in_script(std::string_view script);

// Returns the first call of sbatch, squeue or scancel in the text of a shell script: programs that
// ask the API server.
std::optional<LauncherCall> client_in_script(std::string_view script);

// Returns the launcher that these words call, which are a container's command and arguments:
// itself, behind env, or in the text that a shell gets with -c. Nothing else is looked at: other
// programs may have any words as arguments, and what is in the image cannot be seen.
std::optional<LauncherCall> launcher_in_command(std::span<const std::string> words);

// Returns true if the launcher starts processes beside itself and so works within one pod. srun
// asks a controller of Slurm, which is nowhere.
bool works_within_a_pod(std::string_view launcher);

}  // namespace slurm
