// TimeLimits: when jobs reach their time limits and their deadlines (13.1 to 13.3, R13.20, R13.21).
// A limit counts run time alone, so the instant depends on the job's turns. A timer is a lower
// bound of that instant; when it fires, the limit is reached or the timer is set again. A deadline
// is a second bound, of wall time: it also ends a job that stands still, or has not become ready.
//
// Cost: O(log jobs) and one question to the gang per call.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"

namespace sched {

class TimeLimits {
 public:
  TimeLimits(const Cluster& cluster, JobBooks& books, gang::Turns& turns)
      : cluster_{cluster}, books_{books}, turns_{turns} {}

  // Returns the limit of the job in the partition: its own or the partition's, cut to its deadline;
  // nullopt = unlimited.
  static std::optional<base::Duration> limit_of(const Cluster& cluster, const Job& job,
                                                PartitionIndex partition, base::Instant now);
  std::optional<base::Duration> limit_of(const Job& job, PartitionIndex partition,
                                         base::Instant now) const {
    return limit_of(cluster_, job, partition, now);
  }
  // Returns the limit, cut to the wall time that is left until the job's deadline from its start
  // on, or from `now` if it has not begun: the job cannot run for longer.
  static std::optional<base::Duration> until_deadline(const Job& job,
                                                      std::optional<base::Duration> limit,
                                                      base::Instant now);
  // The job has its allocation, and is about to lose it.
  void begun(const Job& job);
  void over(Job& job);
  // Sets the job's timer again. Clears it if the job is not limited, or never runs.
  void arm(Job& job, base::Instant now);
  // Others of its component came or went at this instant, which may have brought its next turn
  // nearer. A timer computed as if the job ran without interruption is a lower bound already and
  // needs no update.
  void advance(Job& job, base::Instant now);
  void disarm(Job& job);
  // The job has run longer than its timetable says. Fires at once if its limit is over, though by
  // its timetable its next turn may be far away.
  void check_at_once(Job& job, base::Instant now);

  // Returns how long the job may run in all, OverTimeLimit included; nullopt = unlimited.
  std::optional<base::Duration> whole_time(const Job& job) const;

  std::optional<base::Instant> next_due() const;
  // Returns the jobs that have reached their deadlines or limits by now, with the verdict of each,
  // and sets the other timers again. Job::ending of each is for the caller to set.
  template <typename Reached>
  void fire(base::Instant now, const Reached& reached) {
    while (Job* const job = take_late(now)) reached(*job, EndingVerdict::kDeadline);
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const JobId id = timers_.begin()->second;
      timers_.erase(timers_.begin());
      Job* job = books_.find(id);
      if (job != nullptr && is_reached(*job, now)) {
        reached(*job, EndingVerdict::kTimeout);
      }
    }
  }

 private:
  bool is_reached(Job& job, base::Instant now);
  // Returns the next job whose deadline has come, which is forgotten; nullptr if there is none.
  Job* take_late(base::Instant now);

  const Cluster& cluster_;
  JobBooks& books_;
  gang::Turns& turns_;
  std::set<std::pair<base::Instant, JobId>> timers_;     // Job::limit_timer of those that have one
  std::set<std::pair<base::Instant, JobId>> deadlines_;  // of allocated jobs
};

}  // namespace sched
