#include "scheduler/simulate/scenario.h"

#include <algorithm>

#include "scheduler/model/reason_names.h"

namespace simulate {

// A recording says when slurmctld passed, sliced and ended jobs, and is replayed in these steps; in
// any other scenario the scheduler's own timers decide.
bool Scenario::timing_is_told() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input& input) {
    // Refused by Slurm: only recordings have such an input.
    if (!input.happening) return true;
    return std::holds_alternative<TellPass>(*input.happening) ||
           std::holds_alternative<TellSlice>(*input.happening) ||
           std::holds_alternative<TellEnd>(*input.happening) ||
           std::holds_alternative<TellTimeLimit>(*input.happening);
  });
}

bool Scenario::has(sched::JobId id) const {
  if (id.number() < 1 || static_cast<std::size_t>(id.number()) > jobs.size()) return false;
  const sched::JobRequest& request = jobs[static_cast<std::size_t>(id.number()) - 1].request;
  if (request.id != id.array()) return false;  // the place of a task
  return !id.is_task() || (request.array && request.array->tasks.contains(*id.task()));
}

std::size_t Scenario::index_of(sched::JobId id) const {
  const std::size_t at = static_cast<std::size_t>(id.number()) - 1;
  if (!id.is_task()) return at;
  const sched::TaskSet& tasks = jobs.at(at).request.array->tasks;
  return at + 1 + static_cast<std::size_t>(tasks.count_below(*id.task()));
}

// Slurm's names, as recordings and `scontrol show job` have them.
std::string_view state_name(sched::JobState state) {
  switch (state) {
    case sched::JobState::kPending:
      return "PENDING";
    case sched::JobState::kRunning:
      return "RUNNING";
    case sched::JobState::kSuspended:
      return "SUSPENDED";
    case sched::JobState::kCompleted:
      return "COMPLETED";
    case sched::JobState::kFailed:
      return "FAILED";
    case sched::JobState::kCancelled:
      return "CANCELLED";
    case sched::JobState::kTimeout:
      return "TIMEOUT";
    case sched::JobState::kPreempted:
      return "PREEMPTED";
    case sched::JobState::kNodeFail:
      return "NODE_FAIL";
    case sched::JobState::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case sched::JobState::kDeadline:
      return "DEADLINE";
  }
  return "UNKNOWN";
}

// Returns the compact states of squeue's ST column.
std::string_view state_code(sched::JobState state) {
  switch (state) {
    case sched::JobState::kPending:
      return "PD";
    case sched::JobState::kRunning:
      return "R";
    case sched::JobState::kSuspended:
      return "S";
    case sched::JobState::kCompleted:
      return "CD";
    case sched::JobState::kFailed:
      return "F";
    case sched::JobState::kCancelled:
      return "CA";
    case sched::JobState::kTimeout:
      return "TO";
    case sched::JobState::kPreempted:
      return "PR";
    case sched::JobState::kNodeFail:
      return "NF";
    case sched::JobState::kOutOfMemory:
      return "OOM";
    case sched::JobState::kDeadline:
      return "DL";
  }
  return "?";
}

std::string_view reason_name(sched::Reason reason) {
  return sched::name_of(reason);
}

// Slurm's abstract CPU ids, as recordings have them: the threads of a core are neighbors, and where
// CPUs are counted as cores an id is a core. For example, cores 0, 1 and 3 of two threads each are
// "0-3,6-7".
std::string cpu_ids(const sched::NodeSpec& node, const sched::CoreSet& cores) {
  const int ids_per_core = node.cpus == node.cores() ? 1 : node.threads_per_core;
  std::string text;
  for (int first = cores.next(0); first >= 0;) {
    int last = first;
    // Neighboring cores become one range.
    while (last + 1 < sched::kCoresPerNodeMax && cores.test(last + 1)) ++last;
    const int low = first * ids_per_core;
    const int high = (last + 1) * ids_per_core - 1;
    if (!text.empty()) text += ',';
    text += std::to_string(low);
    if (high != low) text += "-" + std::to_string(high);
    first = last + 1 < sched::kCoresPerNodeMax ? cores.next(last + 1) : -1;
  }
  return text;
}

}  // namespace simulate
