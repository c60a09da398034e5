#include "cli/cluster/task_control.h"

#include <string>

#include "api/array_status.h"
#include "base/number_list.h"

namespace cli {
namespace {

template <typename Value>
void take(std::map<int, Value>& wishes, const std::vector<int>& tasks,
          const std::optional<Value>& value) {
  if (!value) return;
  for (const int task : tasks) wishes[task] = *value;
}

template <typename Value>
void add_entries(std::vector<kube::TaskControl>& entries, const std::map<int, Value>& wishes,
                 std::optional<Value> kube::TaskControl::*field) {
  std::map<Value, std::vector<int>> by_value;
  for (const auto& [task, value] : wishes) by_value[value].push_back(task);
  for (const auto& [value, tasks] : by_value) {
    kube::TaskControl& entry = entries.emplace_back();
    entry.tasks = base::format_number_list(tasks);
    entry.*field = value;
  }
}

}  // namespace

TaskWishes::TaskWishes(const std::vector<kube::TaskControl>& entries) {
  for (const kube::TaskControl& entry : entries) {
    const auto tasks = base::parse_number_list(entry.tasks, kube::kArrayTasksMax - 1);
    if (!tasks) continue;
    take(hold, *tasks, entry.hold);
    take(suspend, *tasks, entry.suspend);
    take(cancel, *tasks, entry.cancel);
    take(requeue_request, *tasks, entry.requeue_request);
    take(release_request, *tasks, entry.release_request);
    take(time_limit, *tasks, entry.time_limit);
    take(priority, *tasks, entry.priority);
    take(nice, *tasks, entry.nice);
  }
}

void TaskWishes::drop_done(const kube::JobStatus& of_array) {
  if (!of_array.array) return;
  const kube::TaskOutcomes outcomes{*of_array.array};
  const auto drop_ended = [&](auto&... wishes) {
    const auto has_ended = [&](const auto& wish) {
      return outcomes.of(wish.first) != kube::TaskOutcome::kNone;
    };
    (std::erase_if(wishes, has_ended), ...);
  };
  drop_ended(hold, suspend, cancel, requeue_request, release_request);
  drop_ended(time_limit, priority, nice);
  const auto drop_observed = [](std::map<int, std::int64_t>& wishes, int task, std::int64_t done) {
    const auto found = wishes.find(task);
    if (found != wishes.end() && found->second <= done) wishes.erase(found);
  };
  for (const kube::ArrayTask& entry : of_array.array->tasks) {
    if (!entry.observed) continue;
    drop_observed(requeue_request, entry.task, entry.observed->requeue_request);
    drop_observed(release_request, entry.task, entry.observed->release_request);
  }
}

std::vector<kube::TaskControl> TaskWishes::entries() const {
  std::vector<kube::TaskControl> all;
  add_entries(all, hold, &kube::TaskControl::hold);
  add_entries(all, suspend, &kube::TaskControl::suspend);
  add_entries(all, cancel, &kube::TaskControl::cancel);
  add_entries(all, requeue_request, &kube::TaskControl::requeue_request);
  add_entries(all, release_request, &kube::TaskControl::release_request);
  add_entries(all, time_limit, &kube::TaskControl::time_limit);
  add_entries(all, priority, &kube::TaskControl::priority);
  add_entries(all, nice, &kube::TaskControl::nice);
  return all;
}

std::optional<std::vector<int>> parse_tasks(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (text.empty()) return std::nullopt;
  return base::parse_number_list(text, kube::kArrayTasksMax - 1);
}

base::Result<JobAndTasks> read_job_and_tasks(const std::string& word) {
  const std::size_t end = word.find('_');
  if (end == std::string::npos) return JobAndTasks{word};
  JobAndTasks read{word.substr(0, end), parse_tasks(std::string_view{word}.substr(end + 1))};
  if (read.tasks) return read;
  return base::invalid_argument("\"" + word + "\" must name tasks of an array like " + read.job +
                                "_3 or " + read.job + "_[1-3,7]");
}

}  // namespace cli
