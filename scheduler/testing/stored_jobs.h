// StoredJobs: what a caller stores of each job for the next leader, from events and decisions, in
// the way of the operator (its status_after and restore). It asks the scheduler for the times and
// priorities to store.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace sched::testing {

class StoredJobs {
 public:
  void on_event(base::Instant now, const Event& event);
  void on_decisions(base::Instant now, const std::vector<Decision>& decisions);

  // Returns the jobs as a new leader finds them, in job-table order. `partition_of` says what the
  // new leader calls a partition of the old one.
  std::vector<JobFacts> restored(
      const Scheduler& leader, base::Instant now,
      const std::function<PartitionIndex(PartitionIndex)>& partition_of) const;
  // Returns empty, or a fact of a job that the scheduler holds but no decision reported: the next
  // leader would not know it. A new field of JobFacts is compared unless it is left out here.
  std::string not_told(const Scheduler& leader, base::Instant now) const;
  // Returns true if the spec asks for a hold now.
  bool asks_for_hold(JobId id) const;
  bool asks_for_suspend(JobId id) const;
  // Returns true if a waiting job was found to be impossible on its nodes. This is not stored: a
  // new leader finds it out again when enough nodes are left for the job.
  bool has_impossible() const { return !impossible_.empty(); }
  // Returns when the job got its nodes; nullopt if it has none.
  std::optional<base::Instant> allocated_at(JobId id) const;
  // Returns the new leader's first events: wishes that the old one had not fulfilled.
  std::vector<Event> wishes(const std::vector<JobFacts>& jobs) const;

 private:
  JobFacts* find(JobId id);
  void end(JobId id, JobState state, int exit_code);
  static void change(JobFacts& job, const JobRequest& changed);
  void on(base::Instant now, const Update& update);
  void on(const JobEnding& ending);
  void on(base::Instant now, const StateChange& change);

  Configuration configuration_;
  std::set<JobId> impossible_;
  std::map<JobId, JobFacts> jobs_;  // without what is asked for; `partition` while allocated
};

}  // namespace sched::testing
