// When jobs that run will have run for as long as they are to run: for those who let a scheduler go
// on in virtual time. A job that takes turns gets there in its turns, which later events change, so
// jobs wait in a heap by a lower bound, and those near the top are asked for exactly
// (Scheduler::when_has_run).
//
// Cost of a call: O(log jobs), and a question to the scheduler for each bound that has come.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"

namespace sched {

class Scheduler;

class ComingEnds {
 public:
  struct End {
    JobId job;
    bool is_killed = false;    // by end_at()
    std::int64_t version = 0;  // of what holds()
  };

  // Each of these replaces what was said of the job before.
  // It ends when it has run for `work`. REQUIRES: it is allocated until drop(), and not before
  // `bound`.
  void end_after(JobId job, base::Duration work, base::Instant bound);
  // Notes that the job is killed at that instant, even if it does not run then.
  void kill_at(JobId job, base::Instant at);
  // Notes that the job has no known end.
  void drop(JobId job) { ends_.erase(job); }

  // Returns the next end, if it is by `until` and nothing happens before.
  std::optional<base::Instant> next(Scheduler& scheduler, base::Instant until);
  // Takes out those that have come, by their instants, at one instant by their jobs.
  std::vector<End> take_due(Scheduler& scheduler, base::Instant now);
  // False: the job was set or dropped since it was taken out.
  bool holds(const End& end) const;

 private:
  struct Known {
    std::int64_t version;
    std::optional<base::Duration> work;  // absent: it is killed
  };
  // The job does not end before `at`.
  struct Bound {
    base::Instant at;
    JobId job;
    std::int64_t version;  // of ends_; others are void
    friend bool operator>(const Bound& a, const Bound& b) {
      return std::pair{a.at, a.job} > std::pair{b.at, b.job};
    }
  };

  void set(JobId job, std::optional<base::Duration> work, base::Instant bound);
  // Nothing: it is void.
  const Known* known(const Bound& bound) const;

  std::priority_queue<Bound, std::vector<Bound>, std::greater<>> bounds_;
  std::map<JobId, Known> ends_;
  std::int64_t version_ = 0;
};

}  // namespace sched
