// LicenseCounts: which licenses allocated jobs hold, as a listener of JobBooks. A job takes its
// licenses at its start and gives them back when its last pod is gone (R11.6); a suspended job
// keeps them (R11.7). An administrator may set a counter below what is in use: then no job gets any
// until enough have come back. With reclaim_licenses a job whose victims are on their way out
// counts as if it had its own already, so that no job behind it takes what they leave (P14).
//
// Cost: a job that comes or goes, and a question, O(licenses of the job); while jobs wait for their
// victims, a question O(allocated jobs) for each license.
#pragma once

#include <optional>
#include <string>

#include "scheduler/jobs/job_books.h"
#include "scheduler/limits/limit_scope.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/licenses.h"

namespace sched {

class LicenseCounts {
 public:
  // The arguments must outlive this object.
  LicenseCounts(const Cluster& cluster, JobBooks& books);

  // Returns why a new job is turned away: the cluster does not have what it asks for.
  std::optional<std::string> refused_at_submit(const JobRequest& request) const;
  // Returns reason and sentence if the job would have to wait for licenses.
  std::optional<LimitHit> over(const Job& job) const;
  // Returns how many more than are free the job asks for, by name; empty = it may start.
  Licenses missing(const Job& job) const;

  const Licenses& in_use() const { return in_use_; }
  // Empty, or what is inconsistent; for tests. Cost: O(allocated jobs).
  std::string check_invariants() const;

 private:
  int total(const std::string& name) const {
    return licenses_of(cluster_.parameters().licenses, name);
  }

  // The licenses that jobs before this one have reclaimed: how many they are to get, and how many
  // of these are still in use by their victims.
  struct Promised {
    int kept = 0;
    int coming_back = 0;
  };
  Promised promised(const Job& job, const std::string& name) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  Licenses in_use_;  // names that once were in use stay, with 0
};

}  // namespace sched
