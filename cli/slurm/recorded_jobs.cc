#include "cli/slurm/recorded_jobs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace cli {
namespace {

// A run of a job, as both know it.
using Run = std::tuple<std::string, int>;  // UID, task or -1

int task_of(const JobPart& part) {
  const bool is_one = part.array && part.array->tasks.size() == 1;
  return is_one ? part.array->tasks.front() : -1;
}

bool is_over(const kube::Job& job) {
  return job.status.state && kube::is_final(*job.status.state);
}

AccountedJob accounted(const records::Record& record) {
  AccountedJob one{.part = {.job = std::make_shared<kube::Job>(records::job_of(record))},
                   .state = record.state};
  if (record.task) {
    one.part.array = ArrayPart{record.array_id.value_or(0), {*record.task}, std::nullopt};
  }
  return one;
}

std::tuple<std::int64_t, int, std::int64_t> order_of(const AccountedJob& one) {
  const kube::JobStatus& status = one.part.job->status;
  const std::int64_t number = one.part.array ? one.part.array->array_id : status.job_id.value_or(0);
  return {number, task_of(one.part), status.restarts.value_or(0)};
}

}  // namespace

std::vector<AccountedJob> join_records(std::vector<JobPart> existing,
                                       const std::vector<records::Record>& recorded,
                                       bool has_duplicates) {
  std::map<Run, const records::Record*> last;
  for (const records::Record& record : recorded) {
    const records::Record*& found = last[{record.job_uid, record.task.value_or(-1)}];
    if (found == nullptr || found->restart < record.restart) found = &record;
  }
  std::vector<AccountedJob> all;
  std::set<Run> exists;  // and is shown as it is
  for (JobPart& part : existing) {
    const Run run{part.job->metadata.uid, task_of(part)};
    const auto found = last.find(run);
    const bool is_recorded = found != last.end() && found->second->end_time.has_value();
    const bool is_newer =
        is_recorded && found->second->restart >= part.job->status.restarts.value_or(0);
    if (is_newer && is_over(*part.job)) continue;
    exists.insert(run);
    all.push_back({.part = std::move(part)});
  }
  for (const records::Record& record : recorded) {
    const Run run{record.job_uid, record.task.value_or(-1)};
    const bool is_shown_as_it_is = exists.contains(run);
    const bool is_last = last[run] == &record && !is_shown_as_it_is;
    if (!is_last && !has_duplicates) continue;
    // The object says the same, and newer.
    if (is_shown_as_it_is && !record.end_time) continue;
    all.push_back(accounted(record));
  }
  if (recorded.empty()) return all;
  std::multimap<decltype(order_of(all.front())), AccountedJob> in_order;
  for (AccountedJob& one : all) in_order.emplace(order_of(one), std::move(one));
  all.clear();
  for (auto& [order, one] : in_order) all.push_back(std::move(one));
  return all;
}

}  // namespace cli
