#include "cli/cluster/page_tasks.h"

#include <algorithm>
#include <memory>
#include <set>

#include "api/array_status.h"

namespace cli {
namespace {

std::string board_name(const std::string& uid, int number) {
  return uid + "_" + std::to_string(number);
}

// Returns the array as a job that stands for one task: nothing in it is about other tasks.
kube::Job one_of(const kube::Job& array) {
  kube::Job one = array;
  one.status = {};
  one.spec.control.tasks.clear();
  return one;
}

}  // namespace

// 1. the tasks that have an entry
// 2. those that had one: how they ended stands in the outcomes. One that waits as all the others do
//    (it was held and is no longer) is forgotten
void PageTasks::on_array(
    const kube::Job& array, base::Instant now,
    const std::function<std::vector<std::string>(const kube::JobStatus& task)>& stoppers) {
  const std::string& uid = array.metadata.uid;
  const kube::ArrayStatus status = array.status.array.value_or(kube::ArrayStatus{});
  std::set<int> present;
  const kube::Job like = one_of(array);
  for (const kube::ArrayTask& entry : status.tasks) {
    present.insert(entry.task);
    Task& task = tasks_[uid][entry.task];
    task.has_ended = false;
    task.job_id = entry.job_id;
    auto one = std::make_shared<kube::Job>(like);
    one->status = kube::task_status(entry, array.status);
    follow_stays(task.stays, one->status, now, [&] { return stoppers(one->status); });
    board_.set("tasks", board_name(uid, entry.task), page_task(one, entry.task, task.stays),
               page_scope("jobs", array.metadata.ns));
  }
  const auto known = tasks_.find(uid);
  if (known == tasks_.end()) return;
  std::vector<int> over;
  for (const auto& [number, task] : known->second) {
    if (!task.has_ended && !present.contains(number)) over.push_back(number);
  }
  if (over.empty()) return;
  const kube::TaskOutcomes outcomes{status};
  for (const int number : over) end(array, number, state_of(outcomes.of(number)), now);
}

bool PageTasks::on_array_gone(const kube::Job& array, base::Instant now) {
  const auto found = tasks_.find(array.metadata.uid);
  if (found == tasks_.end()) return false;
  std::vector<int> over;
  for (const auto& [number, task] : found->second) {
    if (!task.has_ended) over.push_back(number);
  }
  for (const int number : over) end(array, number, kube::JobState::kCancelled, now);
  return tasks_.contains(array.metadata.uid);
}

void PageTasks::drop(const std::string& uid, int number) {
  board_.remove("tasks", board_name(uid, number));
  const auto known = tasks_.find(uid);
  known->second.erase(number);
  if (known->second.empty()) tasks_.erase(known);
}

// One that never ran has no past to show.
void PageTasks::end(const kube::Job& array, int number, kube::JobState state, base::Instant now) {
  const std::string& uid = array.metadata.uid;
  Task& task = tasks_.at(uid).at(number);
  if (task.stays.empty()) {
    drop(uid, number);
    return;
  }
  task.has_ended = true;
  if (!task.stays.back().to) task.stays.back().to = now;
  auto one = std::make_shared<kube::Job>(one_of(array));
  one->status.state = state;
  one->status.job_id = task.job_id;
  one->status.partition = array.status.partition;
  one->status.start_time = task.stays.back().from;
  one->status.end_time = task.stays.back().to;
  board_.set("tasks", board_name(uid, number), page_task(one, number, task.stays),
             page_scope("jobs", array.metadata.ns));
  ended_.emplace_back(uid, number);
  if (ended_.size() <= kEndedMax) return;
  const auto [oldest, oldest_number] = ended_.front();
  ended_.pop_front();
  const auto known = tasks_.find(oldest);
  // It may run again meanwhile.
  if (known == tasks_.end() || !known->second.contains(oldest_number)) return;
  const Task& last = known->second.at(oldest_number);
  if (!last.has_ended) return;
  forgotten_ = std::max(forgotten_, last.stays.back().to.value_or(now));
  drop(oldest, oldest_number);
}

}  // namespace cli
