#include "operator/jobs/task_wishes.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "api/array_status.h"
#include "base/number_list.h"
#include "translation/job_check.h"

namespace control {
namespace {

// The entries are read once for each generation of the spec, and not if they name more tasks than
// they may: then those that were read before hold.
const std::vector<ArrayRecord::Wish>& wishes_of(JobRecord& array) {
  ArrayRecord& record = *array.array;
  const std::int64_t generation = array.object->metadata.generation;
  if (std::exchange(record.wishes_generation, generation) == generation) return record.wishes;
  if (kube::names_too_many_tasks(array.object->spec.control)) return record.wishes;
  record.wishes.clear();
  for (const kube::TaskControl& entry : array.object->spec.control.tasks) {
    const auto numbers = base::parse_number_list(entry.tasks, kube::kArrayTasksMax - 1);
    if (!numbers) continue;
    ArrayRecord::Wish& wish = record.wishes.emplace_back();
    for (const int number : *numbers) wish.tasks.insert(number);
    wish.wish = entry;
  }
  return record.wishes;
}

// Without what is not legal, which the condition of the job says.
sched::TaskTerms terms_of(const kube::TaskControl& wish) {
  sched::TaskTerms terms;
  if (wish.time_limit && wish.time_limit->count() > 0) terms.time_limit = wish.time_limit;
  if (wish.priority && *wish.priority > 0 && *wish.priority <= kPriorityMax) {
    terms.priority = sched::Priority{static_cast<std::uint32_t>(*wish.priority)};
  }
  if (wish.nice && *wish.nice >= -kNiceMax && *wish.nice <= kNiceMax) terms.nice = wish.nice;
  return terms;
}

}  // namespace

kube::TaskControl wish_for(JobRecord& array, int task) {
  kube::TaskControl wish;
  const auto take = [](auto& field, const auto& of_entry) {
    if (of_entry) field = of_entry;
  };
  for (const ArrayRecord::Wish& entry : wishes_of(array)) {
    if (!entry.tasks.contains(task)) continue;
    take(wish.hold, entry.wish.hold);
    take(wish.suspend, entry.wish.suspend);
    take(wish.cancel, entry.wish.cancel);
    take(wish.requeue_request, entry.wish.requeue_request);
    take(wish.release_request, entry.wish.release_request);
    take(wish.time_limit, entry.wish.time_limit);
    take(wish.priority, entry.wish.priority);
    take(wish.nice, entry.wish.nice);
  }
  return wish;
}

std::set<int> named_tasks(JobRecord& array) {
  std::set<int> named;
  for (const ArrayRecord::Wish& each : wishes_of(array)) {
    each.tasks.each([&](int number) { named.insert(number); });
  }
  return named;
}

std::map<int, sched::TaskTerms> terms_of_tasks(JobRecord& array) {
  std::map<int, sched::TaskTerms> all;
  for (const int number : named_tasks(array)) {
    if (!array.array->is_open(number)) continue;
    const sched::TaskTerms terms = terms_of(wish_for(array, number));
    if (terms != sched::TaskTerms{}) all[number] = terms;
  }
  return all;
}

std::set<int> held_tasks(JobRecord& array) {
  const kube::JobControl& control = array.object->spec.control;
  std::set<int> held;
  if (control.hold.value_or(false) || control.suspend.value_or(false)) return held;
  for (const int number : named_tasks(array)) {
    const kube::TaskControl wish = wish_for(array, number);
    const bool must_wait = wish.hold.value_or(false) || wish.cancel.value_or(false);
    if (must_wait && array.array->is_open(number)) held.insert(number);
  }
  return held;
}

sched::JobRequest request_of_task(const JobRecord& array, int task) {
  sched::JobRequest request = *array.request;
  request.id = sched::JobId::of_task(array.id, task);
  request.array.reset();  // it is a job of its own
  const auto told = array.array->told_terms.find(task);
  if (told != array.array->told_terms.end()) told->second.apply_to(request);
  const auto held = array.array->told_holds.find(task);
  if (held != array.array->told_holds.end()) request.hold = held->second;
  return request;
}

bool has_terms_of(const sched::JobRequest& a, const sched::JobRequest& b) {
  return a.time_limit == b.time_limit && a.priority == b.priority && a.nice == b.nice;
}

void take_terms(JobRecord& task, const sched::JobRequest& from) {
  if (has_terms_of(*task.request, from)) return;
  auto request = std::make_shared<sched::JobRequest>(*task.request);
  request->time_limit = from.time_limit;
  request->priority = from.priority;
  request->nice = from.nice;
  task.request = std::move(request);
}

}  // namespace control
