// Names of files with the patterns of sbatch and srun: "slurm-%j.out", "logs/%x-%5t.txt".
// SOURCE: sbatch(1), "filename pattern", and srun(1), "I/O Redirection". Pure.
#pragma once

#include <string>
#include <string_view>

namespace slurm {

struct NameParts {
  std::string job_id{};      // %j
  std::string array_id{};    // %A; "" = it is of no array, and %A is as %j
  std::string array_task{};  // %a; "" = likewise, and %a stays
  std::string step_id{};     // %s; of a script "batch"
  std::string job_name{};    // %x
  std::string user{};        // %u
  std::string node{};        // %N; "" = not known yet, and %N stays
  int node_index = 0;        // %n, of the node within the job
  int task = 0;              // %t, of the task within the step
};

// Where a script writes without --output, and a task of an array.
inline constexpr const char* kScriptOutput = "slurm-%j.out";
inline constexpr const char* kTaskOutput = "slurm-%A_%a.out";

// "%5j" pads with zeros. A pattern that does not exist stays as it is. A backslash anywhere in the
// text switches all patterns off and is dropped, as Slurm does it.
std::string file_name(std::string_view pattern, const NameParts& parts);

// Returns true if the tasks of a step have different files.
bool names_tasks(std::string_view pattern);

}  // namespace slurm
