// sbatch's arguments and #SBATCH lines, read into the scheduler's request (1.5). `submit` and the
// scenarios of `simulate` use it. SOURCE: sbatch(1). Pure: no files, no clock, no environment.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scheduler/model/job.h"
#include "slurm/gres.h"
#include "slurm/quantities.h"

namespace slurm {

inline constexpr std::size_t kBatchScriptBytesMax = 4U << 20U;  // MaxScriptSize's default
inline constexpr std::size_t kSbatchArgumentsMax = 4'096;

// --signal: a notice before the time limit.
struct NoticeSignal {
  std::string name;  // "SIGUSR1"
  base::Duration before = std::chrono::seconds{60};
  bool to_script = false;  // B: the shell of the script, else the tasks of its steps
  friend bool operator==(const NoticeSignal&, const NoticeSignal&) = default;
};

// The request of one submission, with the parts of it that concern the caller and not the
// scheduler.
struct BatchOptions {
  sched::JobRequest request;                     // id, user and submit_time are the caller's
  std::optional<std::string> working_directory;  // --chdir
  std::optional<std::string> wrap;               // --wrap
  std::optional<std::string> output;             // --output, --error, --input: files, with patterns
  std::optional<std::string> error;
  std::optional<std::string> input;
  std::optional<bool> appends;         // --open-mode=append
  std::optional<std::string> exports;  // --export
  bool has_empty_name = false;         // --job-name=, which replaces the script's name
  std::string comment;                 // --comment
  std::string dependency;              // --dependency, as it was written
  // Variables for the script with options as written: SLURM_GPUS_PER_TASK and the like.
  std::map<std::string, std::string> variables;
  std::string cluster;                 // --clusters
  std::string distribution;            // --distribution, of the script's steps, as it was written
  std::optional<NoticeSignal> signal;  // --signal
  std::optional<std::string> container_image;   // --image of Shifter, --container-image of pyxis
  std::optional<std::string> container_mounts;  // of pyxis
  bool is_parsable = false;                     // --parsable
  bool test_only = false;                       // --test-only
  bool waits = false;                           // --wait, of a script
  std::vector<std::string> warnings;            // options without effect here, one sentence each
};

struct SbatchOption;  // sbatch.cc

// Collects options from several places; what is added later wins. An option that is unknown, has an
// impossible value or belongs to a feature that is not there is an error that names it.
class SbatchReader {
 public:
  // `now` is what --begin and --deadline count from.
  explicit SbatchReader(Now now) : now_{now} {}

  // Options only; `where` begins the messages ("line 3", or empty). A word that is not an option
  // is an error.
  base::Status add(std::span<const std::string> arguments, const std::string& where);

  // Does the same for options that variables stand for, such as SBATCH_MEM_PER_CPU.
  base::Status add_variables(std::span<const std::string> arguments);

  // Adds the option at arguments[i], with its value; leaves i on its last word. For command lines
  // on which other words follow. REQUIRES: arguments[i] begins with '-' and is longer than that.
  base::Status add_option(std::span<const std::string> arguments, std::size_t& i);

  // Adds the #SBATCH lines of a batch script: those before the first line that is a command. Lines
  // of `#SBATCH` with a hetjob separator are refused. (sbatch(1), "the batch script")
  base::Status add_script(std::string_view script);

  // Applies what spans several options: ranges, tasks per node, tasks against nodes, --exclusive
  // against --oversubscribe (1.5). REQUIRES: nothing that was added was refused.
  base::Result<BatchOptions> finish() const;

 private:
  friend struct SbatchOptionActions;

  // An amount of memory, of a node or a CPU, and whether a variable has said it.
  struct MemoryOption {
    sched::MemoryMiB amount;
    bool is_variable = false;
  };

  base::Status settle_memory(sched::JobRequest& request) const;
  std::optional<std::int64_t> tasks_of_units() const;
  base::Status add_long(std::span<const std::string> arguments, std::size_t& i);
  base::Status add_letters(std::span<const std::string> arguments, std::size_t& i);
  base::Status add_without_value(const SbatchOption& option, std::string_view name,
                                 std::span<const std::string> arguments, std::size_t& i);

  Now now_;
  BatchOptions options_;
  std::optional<int> min_nodes_;
  std::optional<int> max_nodes_;
  bool reads_variables_ = false;
  std::optional<MemoryOption> memory_per_node_;      // --mem
  std::optional<MemoryOption> memory_per_cpu_;       // --mem-per-cpu
  bool cpus_given_ = false;                          // --cpus-per-task
  std::optional<std::int64_t> tasks_per_node_info_;  // the product of -B
  DeviceOptions devices_;
};

// Returns the options that are taken, one a line, for --help.
std::string sbatch_help();

// Reads one line of arguments as a user would type them: "-N2 -p hi --exclusive".
base::Result<BatchOptions> read_sbatch_line(std::string_view line, Now now);

// Reads a signal that is written as sbatch and scancel take it: "USR1", "SIGUSR1", "10".
std::optional<int> signal_number(std::string_view text);

}  // namespace slurm
