#include "scheduler/jobs/job_table.h"

#include <utility>

namespace sched {

// A record stays where it is until it is erased: selectors, queue and node usage keep pointers to
// it. Cost: O(log pages).
Job& JobTable::add(JobFacts facts) {
  CHECK(find(facts.id) == nullptr, to_string(facts.id));
  auto job = std::make_unique<Job>();
  static_cast<JobFacts&>(*job) = std::move(facts);
  job->table_order = next_order_++;
  job->select.id = job->id;
  job->select.table_order = job->table_order;
  job->select.request = job->request.get();
  Job& added = *job;
  by_id_.insert(added.id, added);
  by_order_.emplace_hint(by_order_.end(), added.table_order, std::move(job));
  return added;
}

void JobTable::erase(JobId id) {
  const Job* const job = find(id);
  if (job == nullptr) return;
  by_id_.erase(id);
  by_order_.erase(job->table_order);
}

}  // namespace sched
