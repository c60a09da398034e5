#include "scheduler/jobs/job_table.h"

namespace sched {

// A record stays where it is until it is erased: selectors, queue and node usage keep pointers to
// it, and `select.request` points into the record itself. Cost: O(log pages).
Job& JobTable::add(const JobRequest& request) {
  std::unique_ptr<Page>& page = pages_[page_of(request.id)];
  if (!page) page = std::make_unique<Page>();
  Job*& place = page->jobs[place_of(request.id)];
  CHECK(place == nullptr, to_string(request.id));
  auto job = std::make_unique<Job>();
  job->id = request.id;
  job->table_order = next_order_++;
  job->request = request;
  job->select.id = job->id;
  job->select.table_order = job->table_order;
  job->select.request = &job->request;
  Job& added = *job;
  place = &added;
  ++page->jobs_count;
  by_order_.emplace_hint(by_order_.end(), added.table_order, std::move(job));
  return added;
}

void JobTable::erase(JobId id) {
  const auto page = pages_.find(page_of(id));
  if (page == pages_.end()) return;
  Job*& place = page->second->jobs[place_of(id)];
  if (place == nullptr) return;
  by_order_.erase(place->table_order);
  place = nullptr;
  // Ids only rise, so pages of old jobs empty and go; the table stays as large as the jobs that are
  // remembered.
  if (--page->second->jobs_count > 0) return;
  if (last_number_ == page->first) last_number_ = kNoPage;
  pages_.erase(page);
}

// Look-ups mostly follow each other among jobs of neighboring numbers, so the last page is tried
// first.
JobTable::Page* JobTable::find_page(std::int64_t number) const {
  if (number == last_number_) return last_page_;
  const auto page = pages_.find(number);
  if (page == pages_.end()) return nullptr;
  last_number_ = number;
  last_page_ = page->second.get();
  return last_page_;
}

const Job* JobTable::find(JobId id) const {
  const Page* const page = find_page(page_of(id));
  return page == nullptr ? nullptr : page->jobs[place_of(id)];
}

Job* JobTable::find(JobId id) {
  const Page* const page = find_page(page_of(id));
  return page == nullptr ? nullptr : page->jobs[place_of(id)];
}

}  // namespace sched
