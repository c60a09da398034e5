#include "scheduler/job_table.h"

namespace sched {

Job& JobTable::add(const JobRequest& request) {
  CHECK(!by_id_.contains(request.id), to_string(request.id));
  auto job = std::make_unique<Job>();
  job->id = request.id;
  job->table_order = next_order_++;
  job->request = request;
  job->select.id = job->id;
  job->select.table_order = job->table_order;
  job->select.request = &job->request;
  Job& added = *job;
  by_id_.emplace(added.id, &added);
  by_order_.emplace_hint(by_order_.end(), added.table_order, std::move(job));
  return added;
}

void JobTable::erase(JobId id) {
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return;
  by_order_.erase(at->second->table_order);
  by_id_.erase(at);
}

Job* JobTable::find(JobId id) {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

const Job* JobTable::find(JobId id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

}  // namespace sched
