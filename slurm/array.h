// Slurm's spelling of the tasks of an array: "0-15", "1,3,5-7", "1-7:2", "0-15%4".
// SOURCE: sbatch(1). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/model/array.h"
#include "scheduler/model/ids.h"

namespace slurm {

// Numbers of tasks are below: Slurm's MaxArraySize at its largest usual value, plus one.
inline constexpr int kArrayTasksEnd = 100'001;

// `tasks_end`: numbers of tasks are below (MaxArraySize).
base::Result<sched::ArrayRequest> parse_array(std::string_view what, std::string_view text,
                                              int tasks_end);

// Returns "1-7:2%4" as it would be written: ranges where two or more follow each other, "1-7:2"
// where the whole set is a row of equal steps, and the %N.
std::string format_array(const sched::ArrayRequest& array);
// Returns the same of a set of tasks, without %N; "" of an empty one.
std::string format_tasks(const sched::TaskSet& tasks);

// Returns "12", or "12_3" for a task; nullopt for anything else.
std::optional<sched::JobId> parse_job_id(std::string_view text);

}  // namespace slurm
