#include "scheduler/jobs/job_table.h"

#include <utility>

namespace sched {

// A record stays where it is until it is erased: selectors, queue and node usage keep pointers to
// it. Cost: O(log pages).
Job& JobTable::add(JobFacts facts) {
  CHECK(find(facts.id) == nullptr, to_string(facts.id));
  auto job = std::make_unique<Job>();
  static_cast<JobFacts&>(*job) = std::move(facts);
  Job* const array = job->id.is_task() ? find(job->id.array()) : nullptr;
  if (array != nullptr && array->is_array()) {
    job->whole = array;
    job->table_order = array->table_order + *job->id.task() + 1;
  } else {
    job->table_order = std::exchange(next_order_, next_order_ + kBetween);
  }
  if (job->array) job->tasks = std::make_unique<Job::Tasks>();
  job->select.id = job->id;
  job->select.table_order = job->table_order;
  job->select.request = job->request.get();
  Job& added = *job;
  by_id_.insert(added.id, added);
  by_order_.emplace_hint(by_order_.end(), added.table_order, std::move(job));
  return added;
}

void JobTable::swap_places(Job& array, Job& task) {
  auto first = by_order_.extract(array.table_order);
  auto second = by_order_.extract(task.table_order);
  task.table_order = array.table_order;
  array.table_order = std::exchange(next_order_, next_order_ + kBetween);
  for (Job* const job : {&array, &task}) job->select.table_order = job->table_order;
  first.key() = array.table_order;
  second.key() = task.table_order;
  by_order_.insert(std::move(first));
  by_order_.insert(std::move(second));
}

void JobTable::erase(JobId id) {
  const Job* const job = find(id);
  if (job == nullptr) return;
  by_id_.erase(id);
  by_order_.erase(job->table_order);
}

}  // namespace sched
