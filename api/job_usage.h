// The resources that a job used, as the launcher of its script reports them at its end: in the
// termination message of its container, from there in the status of the Job and in records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "kube/api/quantity.h"

namespace kube {

// A step, or the script itself, which Slurm has as the step "batch".
struct StepUsage {
  std::string id{};  // "batch", "0", "1", …
  std::string name{};
  std::int32_t tasks = 1;
  std::int32_t nodes = 1;
  std::int32_t cpus = 0;       // that it had; 0: all of the job on that node
  std::int32_t exit_code = 0;  // the highest of its tasks
  std::int32_t signal = 0;     // 0: none has ended it
  std::optional<base::Instant> start_time{};
  base::Duration elapsed{};  // by the clock: with the time in which others had the turn
  base::Duration user_cpu{};
  base::Duration system_cpu{};
  Bytes max_rss{};  // of its largest process

  friend bool operator==(const StepUsage&, const StepUsage&) = default;
};

struct JobUsage {
  base::Duration user_cpu{};
  base::Duration system_cpu{};
  Bytes max_rss{};                 // of the largest process
  Bytes memory_peak{};             // of a pod's container; 0: not known
  std::vector<StepUsage> steps{};  // the script, then the first steps
  std::int32_t more_steps = 0;     // that are not listed

  friend bool operator==(const JobUsage&, const JobUsage&) = default;
};

// The termination message of a launcher.
struct UsageMessage {
  JobUsage usage;
  bool wants_requeue = false;  // its script has called `scontrol requeue`
};

// Bounds of what is taken from a termination message, which the job's own programs may have
// written.
inline constexpr std::size_t kUsageMessageBytesMax = 4'096;
inline constexpr std::size_t kUsageStepsMax = 33;
inline constexpr std::size_t kUsageNameBytesMax = 32;
inline constexpr Bytes kUsageMemoryMax{std::int64_t{1} << 50};

// Returns true if the message claims to be of a launcher.
bool is_usage_message(std::string_view message);
// Parses a launcher's message; nullopt if no launcher writes such a one. The result holds only a
// few bounded numbers and names without special characters, even if the message is forged.
std::optional<UsageMessage> read_usage_message(std::string_view message);

// Returns the steps as a JSON text, for databases; "" if there are none.
std::string write_steps(const JobUsage& usage);
// Adds what write_steps() has written; false: it is something else.
bool read_steps(std::string_view text, JobUsage& usage);

}  // namespace kube
