// UnslicedTime: on a node that does not slice all pods run, also those that are off by the
// timetable, and that counts as run time of their jobs (architecture.md 3). A job whose nodes
// differ counts as running when one of them does not slice. is_unsliced() says which nodes those
// are; the scheduler's clock follows the timetable and does not know. A job whose pods are never
// frozen (condition NeverFrozen) runs all the time wherever it is, so it is counted the same way:
// no job gets more than its share by being unfreezable.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "api/job.h"
#include "api/node_timetable.h"
#include "base/time.h"

namespace control {

// Belongs to the loop's thread.
class UnslicedTime {
 public:
  struct Sources {
    // UIDs of the jobs with an allocation on the node.
    std::function<const std::set<std::string>&(const std::string& node)> jobs_on;
    // By the scheduler's clock; nullopt before the job is ready and once its end is decided.
    std::function<std::optional<base::Duration>(const std::string& uid)> run_time;
    // The job ran longer than the scheduler knows, by `more`. May end jobs.
    std::function<void(const std::string& uid, base::Duration more)> ran;
  };

  // Takes the present value of is_unsliced(). Returns true if it has changed.
  bool observe(const std::string& node, bool unsliced);
  bool slices(const std::string& node) const { return !nodes_.contains(node); }
  // Notes if the job's pods are never frozen. Returns the same.
  bool observe_never_frozen(const std::string& uid, bool never_frozen);
  void drop_job(const std::string& uid) { (void)observe_never_frozen(uid, false); }
  // Notes for such a job the run time that the leader before has stored, as of then.
  void restore_job(const std::string& uid, const kube::RunTime& stored);
  bool counts_nobody() const { return nodes_.empty() && jobs_.empty() && never_frozen_.empty(); }
  const std::set<std::string>& nodes() const { return nodes_; }

  // Every ten seconds, and at once when `observe` returned true: reports for each job on such a
  // node the time that it was off since it was counted last. So far may run times be behind
  // meanwhile, and the end of a job that is beyond its limit.
  void count(base::Instant now, const Sources& sources);
  // The same for one job, at once: before something that may end it. `is_there`: it is on such a
  // node, and is counted from here on, as one is whose pods are never frozen.
  void count_job(const std::string& uid, bool is_there, base::Instant now, const Sources& sources);
  base::Instant next_due() const;

 private:
  // Up to where the run time of a job was counted.
  struct Counted {
    base::Instant at{};
    base::Duration run_time{};  // as of then
  };
  static base::Duration missed(const Counted& counted, std::optional<base::Duration> run_time,
                               base::Instant now);

  std::set<std::string> nodes_;          // that do not slice
  std::set<std::string> never_frozen_;   // UIDs of jobs
  std::map<std::string, Counted> jobs_;  // on those nodes, or of those jobs, by UID
  base::Instant counted_at_{};
};

// Returns for how long the job's pod was off in [from, to) by the timetable. Pure.
base::Duration time_off(const kube::NodeTimetableSpec& spec, const std::string& job_key,
                        base::Instant from, base::Instant to);

// Returns for how long before this leader the job was off by `published` while the node of `table`
// did not slice, as far as its stored run time does not have it yet. Pure.
base::Duration missed_before(const kube::NodeTimetable* table,
                             const kube::NodeTimetableSpec& published, const std::string& job_uid,
                             const kube::JobStatus& status, base::Instant now);

}  // namespace control
