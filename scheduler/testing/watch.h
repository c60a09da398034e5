// Watch: keeps simple books of a scheduler from its events and decisions alone, and says what is
// wrong with a decision: a start on nodes that cannot take it, a unit over its share, memory
// promised twice, a job lost, a reason that is not true.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace sched::testing {

class Watch {
 public:
  struct Book {
    JobRequest request;
    bool told_to_end = false;
    bool ending = false;                   // by itself
    bool cores_released = false;           // suspended by its user
    std::optional<Allocation> allocation;  // while allocated
    std::string partition;
    std::vector<std::string> avoids;  // nodes, until then (StartRefused)
    base::Instant avoids_until{};
    std::set<JobId> unknown;  // to all, when it began to wait for them
    bool has_started = false;
    TaskSet waiting;  // of an array: its tasks that wait as the array
    bool avoids_on(const std::string& node, base::Instant now) const;
  };

  // `scheduler` is asked for names and states; it outlives this, and may be replaced in place.
  explicit Watch(const Scheduler& scheduler) : scheduler_{scheduler} {}

  void on_event(base::Instant now, const Event& event);
  void on_decisions(const std::vector<Decision>& decisions, base::Instant now);

  // Returns the findings since the last call; empty = none.
  std::string take_findings() { return std::exchange(findings_, {}); }
  // Checks that all that is to be seen now agrees: jobs, and reasons when no pass is due.
  void check_jobs(base::Instant now, bool passed);

  // Returns how the jobs that the request waits for have ended, as far as they have.
  std::vector<KnownJob> known_of(const JobRequest& request) const;

  // Books of the jobs that have not ended.
  const std::map<JobId, Book>& books() const { return books_; }
  // Returns how the others have ended.
  const std::map<JobId, JobState>& ended() const { return ended_; }
  const std::map<std::string, NodeSpec>& nodes() const { return nodes_; }

 private:
  void find(JobId job, const std::string& what);
  int held_licenses(const std::string& name) const;
  std::map<JobId, Book>::iterator book_of(JobId id);
  bool is_known(JobId id) const;
  std::vector<JobId> own_tasks(JobId array) const;  // that have books of their own
  void end_array(JobId id, JobState state);
  void check_start(const Start& start, base::Instant now);
  void check_dependency(const Start& start, const Book& book, base::Instant now);
  void check_may_use(const Start& start, const Book& book, const PartitionConfig& where,
                     const NodeAllocation& use, base::Instant now);
  void check_node(const Start& start, const Book& book, const PartitionConfig& partition,
                  const NodeAllocation& use, base::Instant now);
  void check_reason(JobId job, const JobView& view, base::Instant now);
  void check_resources(JobId job, base::Instant now);
  const PartitionConfig* partition(const std::string& name) const;
  std::vector<const PartitionConfig*> partitions_of(const JobRequest& request) const;
  bool is_victim_of(const Book& victim, const PartitionConfig& partition) const;

  const Scheduler& scheduler_;
  Configuration configuration_;
  std::map<std::string, NodeSpec> nodes_;
  std::map<JobId, Book> books_;
  std::map<JobId, base::Instant> first_starts_;
  std::map<JobId, JobState> ended_;
  std::map<JobId, TaskSet> arrays_;  // all of their tasks
  std::string findings_;
};

}  // namespace sched::testing
