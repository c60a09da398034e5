// The fate of each task of an array, as Job.status.array holds it: how the task ended or, if it has
// started, the same facts of its start that a job's status has. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/job.h"

namespace kube {

// Numbers of tasks are below (Slurm's MaxArraySize allows as many).
inline constexpr int kArrayTasksMax = 100'001;
// The most tasks of an array that have started and not ended: those that run and those that wait
// again. Each has an entry in the status of their array, of some 600 bytes before it is packed, and
// each write of the status has all of them.
inline constexpr int kArrayBegunMax = 1'000;

// The most numbers in spec.control.tasks: each task that differs from the rest costs the operator
// as much as a job.
inline constexpr std::size_t kNamedTasksMax = 10'000;
bool names_too_many_tasks(const JobControl& control);

enum class TaskOutcome : std::uint8_t { kNone, kSucceeded, kFailed, kCancelled };
// Returns the state of a task with this outcome; Pending if it has not ended.
JobState state_of(TaskOutcome outcome);

// Cost of each call but show(): constant, or the highest number that it is about.
class TaskOutcomes {
 public:
  TaskOutcomes() = default;
  explicit TaskOutcomes(const ArrayStatus& stored);

  TaskOutcome of(int task) const {
    const auto index = static_cast<std::size_t>(task);
    return index < outcomes_.size() ? outcomes_[index] : TaskOutcome::kNone;
  }
  void set(int task, TaskOutcome outcome);
  int count(TaskOutcome outcome) const { return counts_[static_cast<std::size_t>(outcome)]; }
  int ended() const;
  // Ascending.
  std::vector<int> tasks(TaskOutcome outcome) const;
  // Writes the texts of `status`; its other fields stay as they are.
  void show(ArrayStatus& status) const;

 private:
  std::vector<TaskOutcome> outcomes_;
  std::array<int, 4> counts_{};
};

// Returns the status of a task as that of a job, and back. The entry has what a new leader cannot
// work out of the array: nothing but what is the array's own is lost.
JobStatus task_status(const ArrayTask& entry, const JobStatus& of_array);
// Returns the status of a task from the array's; empty if it has no entry.
JobStatus stored_task(const JobStatus& of_array, int task);
ArrayTask task_entry(int task, const JobStatus& status);

// The most ends that an array keeps for the records. They and the entries of tasks are no more
// than kArrayBegunMax.
inline constexpr std::size_t kArrayEndsMax = 500;
// Returns the status of a task that has ended, and back.
TaskEnd task_end(int task, const JobStatus& status);
JobStatus task_status(const TaskEnd& end, const JobStatus& of_array);

// Returns "37 of 1000 done, 4 run, 1 failed"
std::string array_summary(const ArrayCounts& counts);

}  // namespace kube
