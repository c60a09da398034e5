// QueueRecord: one job waiting for one partition, with all that its place in the queue depends on.
// A job keeps the records that it is queued with, so that they can be taken out again whatever has
// changed since.
#pragma once

#include <compare>
#include <cstdint>

#include "base/time.h"
#include "scheduler/model/ids.h"

namespace sched {

struct Job;

// Returns a place in the order of ids: an array stands behind all of its tasks.
constexpr std::int64_t behind_tasks(JobId job, std::int64_t place) {
  return job.is_task() ? 2 * place : 2 * (place + JobId::kTasksMax) + 1;
}

struct QueueRecord {
  std::int64_t fifo_order = 0;  // the job-table order with sched/builtin, else 0
  Priority within{};            // the priority where the QOS has WITHIN (JobQueue sets it), else 0
  int tier = 0;
  Priority priority{};
  base::Instant submit_time{};
  JobId job{};
  int partition_order = 0;  // two records of one job: the partition that it names first
  PartitionIndex partition{};
  Job* record = nullptr;

  // 3.3 steps 4 to 7: higher tier, higher priority, earlier submission, lower number, of an array
  // the tasks that are jobs of their own before the rest; then the job's own list of partitions.
  // Steps 1 and 3 have no counterpart here, and step 2 is what lanes are for.
  friend bool operator<(const QueueRecord& a, const QueueRecord& b) {
    if (a.fifo_order != b.fifo_order) return a.fifo_order < b.fifo_order;
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.submit_time != b.submit_time) return a.submit_time < b.submit_time;
    if (a.job != b.job)
      return behind_tasks(a.job, a.job.packed()) < behind_tasks(b.job, b.job.packed());
    return a.partition_order < b.partition_order;
  }
};

}  // namespace sched
