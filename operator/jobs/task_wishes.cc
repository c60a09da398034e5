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

const std::vector<TaskControls::Entry>& wishes_of(JobRecord& array) {
  return array.array->controls.of(*array.object);
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

// They are not read if they name more tasks than they may: then those that were read before hold.
const std::vector<TaskControls::Entry>& TaskControls::of(const kube::Job& array) {
  const std::int64_t generation = array.metadata.generation;
  if (std::exchange(generation_, generation) == generation) return entries_;
  if (kube::names_too_many_tasks(array.spec.control)) return entries_;
  entries_.clear();
  for (const kube::TaskControl& each : array.spec.control.tasks) {
    const auto numbers = base::parse_number_list(each.tasks, kube::kArrayTasksMax - 1);
    if (!numbers) continue;
    Entry& entry = entries_.emplace_back();
    for (const int number : *numbers) entry.tasks.insert(number);
    entry.wish = each;
  }
  return entries_;
}

kube::TaskControl wish_for(JobRecord& array, int task) {
  kube::TaskControl wish;
  const auto take = [](auto& field, const auto& of_entry) {
    if (of_entry) field = of_entry;
  };
  for (const TaskControls::Entry& entry : wishes_of(array)) {
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
  for (const TaskControls::Entry& each : wishes_of(array)) {
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
  sched::JobRequest request = array.request();
  request.id = sched::JobId::of_task(array.id, task);
  request.array.reset();  // it is a job of its own
  const ArrayWishes& told = *array.array->wishes;
  const auto terms = told.told_terms.find(task);
  if (terms != told.told_terms.end()) terms->second.apply_to(request);
  const auto held = told.told_holds.find(task);
  if (held != told.told_holds.end()) request.hold = held->second;
  return request;
}

bool has_terms_of(const sched::JobRequest& a, const sched::JobRequest& b) {
  return a.time_limit == b.time_limit && a.priority == b.priority && a.nice == b.nice;
}

std::shared_ptr<const sched::JobRequest> with_terms_of(
    const std::shared_ptr<const sched::JobRequest>& request, const sched::JobRequest& from) {
  if (has_terms_of(*request, from)) return request;
  auto changed = std::make_shared<sched::JobRequest>(*request);
  changed->time_limit = from.time_limit;
  changed->priority = from.priority;
  changed->nice = from.nice;
  return changed;
}

}  // namespace control
