// Admission: which pending jobs are in the queue, and for which partitions (3.2 steps 3 to 6). A
// job that may not wait yet gets the reason of the first gate that refuses it. Gates of the job
// (held, begin time) come before those of each partition (partition_gates.h). A new condition, for
// example a dependency, is one more gate.
//
// Cost: admit and withdraw O(partitions of the job × log queue).
#pragma once

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

// The last instant at which the job may start and still make its deadline (13.3); nullopt = it has
// none.
std::optional<base::Instant> latest_start(const JobRequest& request);

class Admission {
 public:
  // `wakes`: deadlines end jobs at their instant (own timing); otherwise in the next pass.
  Admission(const Cluster& cluster, JobBooks& books, bool wakes);

  // Returns why a new job is turned away for good instead of waiting; nullopt if it is accepted.
  std::optional<std::string> refused_at_submit(const JobRequest& request) const;

  // Decides anew whether and where the job waits. REQUIRES: it is pending.
  void admit(Job& job, base::Instant now);
  // Calls work_out(job), which sets its priority, at least once for each pending job that is not
  // held, and the records take their new places. Returns false if their order is the same as before
  // for sure. Cost: O(pending jobs), and O(queue × log queue) when many change places.
  bool set_priorities(const std::function<void(Job&)>& work_out);
  // Takes its records out of the queue.
  void withdraw(Job& job);
  // A change of nodes or configuration may make the impossible possible (2.4): jobs that no node
  // could hold wait again. Cost: O(these jobs).
  void release_bad_constraints(base::Instant now);
  // Whether it may do something.
  bool has_bad_constraints() const { return !unfit_.empty(); }
  // All pending jobs anew: partitions, QOS or the order changed.
  void admit_all(base::Instant now);
  // Finishes the job with state kDeadline if its latest start has passed, and returns whether it
  // did. The caller must still withdraw it.
  bool end_if_too_late(Job& job, base::Instant now);

  // When a begin time, a requeue delay or a deadline is reached.
  std::optional<base::Instant> next_due() const;
  void fire_timers(base::Instant now);
  // Cost: O(timers); for tests.
  bool has_timer(JobId id) const;
  // Whether set_priorities() comes to the pending job; for tests.
  bool knows(const Job& job) const {
    return !job.queued_in.empty() || outside_.contains(job.table_order);
  }

  const JobQueue& queue() const { return queue_; }
  Unexplained& unexplained() { return unexplained_; }

 private:
  std::optional<Refusal> refused_by_job(const Job& job, base::Instant now) const;
  std::string held_message(const Job& job) const;
  QueueRecord record_of(Job& job, PartitionIndex partition) const;
  static Priority priority_in(const Job& job, PartitionIndex partition);

  const Cluster& cluster_;
  JobBooks& books_;
  const bool wakes_;
  JobQueue queue_;
  Unexplained unexplained_;
  std::set<std::int64_t> outside_;  // pending and not in the queue, by table order
  std::set<std::int64_t> unfit_;    // held for kBadConstraints, by table order; some are no more
  std::set<std::pair<base::Instant, JobId>> timers_;  // a job may have several
};

}  // namespace sched
