// spec.control.tasks of an array: what is wished for single tasks. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/result.h"

namespace cli {

// By field and task. Written, tasks of the same wish are one entry.
struct TaskWishes {
  std::map<int, bool> hold, suspend, cancel;
  std::map<int, std::int64_t> requeue_request, release_request;
  std::map<int, base::Duration> time_limit;
  std::map<int, std::int64_t> priority;
  std::map<int, std::int32_t> nice;

  explicit TaskWishes(const std::vector<kube::TaskControl>& entries);
  // Drops what no longer asks for anything: wishes of tasks that have ended, and requests that were
  // carried out.
  void drop_done(const kube::JobStatus& of_array);
  std::vector<kube::TaskControl> entries() const;
};

// Parses the numbers behind the "_" of a job: "3", "[3,5-7]" or "3,5-7". nullopt if malformed.
std::optional<std::vector<int>> parse_tasks(std::string_view text);

// A job, by name or number, and some of its tasks if it is an array: "1001_[1-3]", "sweep_7". No
// name has a "_".
struct JobAndTasks {
  std::string job;
  std::optional<std::vector<int>> tasks{};
};
base::Result<JobAndTasks> read_job_and_tasks(const std::string& word);

}  // namespace cli
