// Usage: what the jobs of every association and every QOS have used (R9.4), as fair share and the
// limits of group wall time look at it.
//
// The unit of `billed` is a thousandth of a billing unit for one second; a job is billed its CPUs,
// unless its partition has billing weights. Only run time counts: time in suspension is free.
// Usage is charged to users; an account has used what its users have. Once a period
// (PriorityCalcPeriod) everything is halved as often as half-lives have passed, and what running
// jobs have used since is added. A job that ends is charged at its end.
//
// The state is data (UsageState) that a caller can keep and give to the next scheduler, which goes
// on as this one would have.
//
// Cost: charging O(depth of the tree); a period O(associations + allocated jobs).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/priority/usage_state.h"

namespace sched {

class UsageLedger {
 public:
  explicit UsageLedger(const Cluster& cluster) : cluster_{cluster} {}

  // Accounts, users or QOS changed: what those that are still there have used stays.
  void configure();

  // Returns the bill of a job per second of run time: thousandths of billing units. `job` has an
  // allocation.
  std::int64_t rate_of(const Job& job) const;
  // Charges the job for its run time up to `run`, and notes in the job that this was done.
  void charge(Job& job, base::Duration run);
  // Everything decays by the time since the last period; usage is forgotten if a reset
  // (PriorityUsageResetPeriod) lies in between.
  void end_period(base::Instant now);
  base::Instant period_began() const { return as_of_; }
  // Begins the first period.
  void begin_at(base::Instant now) { as_of_ = now; }

  const Used& of(AssociationIndex index) const { return associations_[index.index()]; }
  const Used& of(QosIndex index) const { return qos_[index.index()]; }

  // `jobs`: the allocated ones.
  UsageState save(const std::vector<const Job*>& jobs) const;
  // Takes nothing of the jobs: the caller sets Job::charged. Usage of associations that do not
  // exist is left out.
  void restore(const UsageState& state);

 private:
  void add_up();

  const Cluster& cluster_;
  base::Instant as_of_{};
  std::vector<Used> associations_;  // by AssociationIndex
  std::vector<Used> qos_;           // by QosIndex
  // Their owners, to find them again after a change of the configuration.
  std::vector<std::pair<std::string, std::string>> names_;  // account, user; accounts have no user
  std::vector<std::string> qos_names_;
};

// Returns the first reset after t, at midnight UTC; nullopt = there is none.
std::optional<base::Instant> next_reset(UsageReset reset, base::Instant t);

}  // namespace sched
