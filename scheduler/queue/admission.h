// Admission: which pending jobs are in the queue, and for which partitions (3.2 steps 3 to 6). A
// job that may not wait yet gets the reason of the first gate that refuses it. Gates of the job
// (held, dependency, begin time) come before those of each partition (partition_gates.h). A new
// condition is one more gate.
//
// Cost: admit and withdraw O(partitions of the job × log queue).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/queue/job_queue.h"
#include "scheduler/queue/partition_gates.h"
#include "scheduler/queue/unexplained.h"

namespace sched {

// Returns the last instant at which the job may start and still make its deadline (13.3); nullopt =
// it has none.
std::optional<base::Instant> latest_start(const JobRequest& request);

class Admission {
 public:
  // `wakes`: deadlines end jobs at their instant (own timing); otherwise in the next pass.
  Admission(const Cluster& cluster, JobBooks& books, bool wakes);

  // Returns why a new job is turned away for good instead of waiting; nullopt if it is accepted.
  std::optional<std::string> refused_at_submit(const JobRequest& request) const;

  // Decides whether and where the job waits. REQUIRES: it is pending.
  void admit(Job& job, base::Instant now);
  // New priorities for all jobs that are pending now and not held, in steps. Until the last step
  // the queue has no order, so no pass may be made; jobs may come, go and change. All is in the end
  // as if it had been done in one step at this instant: work_out(job), which sets the job's
  // priority, is called before anything else is done with the job, if it is still to come.
  // REQUIRES: steps that were begun before are done.
  using WorkOut = std::function<void(Job&)>;
  void begin_priorities(WorkOut work_out);
  bool works_priorities_out() const { return static_cast<bool>(work_out_); }
  // Works on at most `jobs` jobs. Returns nullopt if another step must follow, and in the end false
  // if the records are in the same order as before for sure.
  // REQUIRES: works_priorities_out().
  std::optional<bool> step_priorities(std::size_t jobs);
  // Takes its records out of the queue. To be called before anything of the job is changed that its
  // priority or its place in the queue depends on.
  void withdraw(Job& job);
  // The same of a job that waits no longer, or whose place in the table is about to change.
  void forget(Job& job);
  // Some of the array have started: the others wait as before, unless the array may start no more,
  // or its place in the job table is another one.
  void task_started(Job& array, base::Instant now);
  // A change of nodes or configuration may make the impossible possible (2.4): jobs that no node
  // could hold wait again. Cost: O(these jobs).
  void release_bad_constraints(base::Instant now);
  // Returns true if it has something to do.
  bool has_bad_constraints() const { return !unfit_.empty(); }
  // Admits all pending jobs again: partitions, QOS or the order changed.
  // REQUIRES: not works_priorities_out().
  void admit_all(base::Instant now);
  // Finishes the job with state kDeadline if its latest start has passed, and returns whether it
  // did. The caller must still withdraw it.
  bool end_if_too_late(Job& job, base::Instant now);

  // Returns when a begin time, a requeue delay or a deadline is reached.
  std::optional<base::Instant> next_due() const;
  void fire_timers(base::Instant now);
  // Cost: O(timers); for tests.
  bool has_timer(JobId id) const;
  // Returns true if new priorities come to the pending job; for tests.
  bool knows(const Job& job) const {
    return job.count() == 0 || !job.queued.in.empty() || outside_.contains(job.table_order) ||
           outside_waiting_.contains(job.table_order);
  }

  const JobQueue& queue() const { return queue_; }
  Unexplained& unexplained() { return unexplained_; }

 private:
  std::optional<Refusal> refused_by_job(const Job& job, base::Instant now) const;
  std::string held_message(const Job& job) const;
  static std::string throttled_message(const Job& job);
  QueueRecord record_of(Job& job, PartitionIndex partition) const;
  static Priority priority_in(const Job& job, PartitionIndex partition);
  Priority new_priority(const QueueRecord& queued);

  const Cluster& cluster_;
  JobBooks& books_;
  const bool wakes_;
  JobQueue queue_;
  Unexplained unexplained_;
  WorkOut work_out_;                        // while new priorities are worked out
  std::set<std::int64_t> outside_;          // pending and not in the queue, by table order
  std::set<std::int64_t> outside_waiting_;  // likewise; they wait for their new priorities
  std::set<std::int64_t> unfit_;  // held for kBadConstraints, by table order; some are no more
  std::set<std::pair<base::Instant, JobId>> timers_;  // a job may have several
};

}  // namespace sched
