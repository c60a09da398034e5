// Priorities: the priority of every job (chapter 9), by the rule that PriorityType names.
//
//   basic        each new job gets one less than the job before it, and keeps that (R9.2).
//   multifactor  worked out from age, size, partition, QOS and fair share (R9.3), again for all
//                waiting jobs once in a period (PriorityCalcPeriod).
//
// A priority that the request names is kept as it is (R9.1). It also owns the usage that fair share
// and GrpWall are about, and charges jobs for it.
//
// Threads: none. Cost: a job O(its partitions); a period O(associations + allocated jobs); after it
// each waiting job a few additions: what does not change with the time is kept with the job.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/gang/turns.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/priority/basic.h"
#include "scheduler/priority/fair_share.h"
#include "scheduler/priority/multifactor.h"
#include "scheduler/priority/priority_views.h"
#include "scheduler/priority/usage.h"

namespace sched {

class Priorities {
 public:
  Priorities(const Cluster& cluster, JobBooks& books, gang::Turns& turns)
      : cluster_{cluster},
        books_{books},
        turns_{turns},
        usage_{cluster},
        fair_share_{cluster, usage_} {}

  // The configuration changed, or nodes came or went.
  void configure();
  // Returns the number that a new job gets under `basic`; under both rules it is used up.
  Priority next_basic(const JobRequest& request) { return basic_.next(request); }
  void restore_basic(const JobRequest& request, Priority priority) {
    basic_.restore(request, priority);
  }
  bool is_multifactor() const {
    return cluster_.parameters().priority.type == PriorityType::kMultifactor;
  }

  // Returns the association of the job; nullopt = accounts are not configured, or its user is in
  // none.
  std::optional<AssociationIndex> association_of(const JobRequest& request) const;
  // Works the job's priority out: Job::priority and Factors::priority_in. With `basic` it does
  // nothing. Returns true if it changed.
  bool set(Job& job, base::Instant now);
  // Returns the factors of the job in that partition.
  PriorityFactors factors(const Job& job, PartitionIndex partition, base::Instant now);

  // --- usage ---
  // Charges the job for what it ran. REQUIRES: its clock is as of now.
  void charge(Job& job);
  // Keeps charged ends: take_charged_ends() is called.
  void keep_ends() { keeps_ends_ = true; }
  // Takes the jobs that were charged at their ends since the last call, for all of their run time.
  std::vector<JobCharged> take_charged_ends() { return std::exchange(charged_ends_, {}); }
  // Returns the end of the period, nullopt = nothing to work out then.
  std::optional<base::Instant> next_due() const;
  // Begins the first period, unless one has begun.
  void begin(base::Instant now);
  // Ends the period: usage decays, and running jobs are charged. With CALCULATE_RUNNING they get
  // their priorities. Returns true if one of these has changed.
  bool end_period(base::Instant now);
  // Does as set(), from what is kept of the job and of its user where that is enough.
  // REQUIRES: end_period(now) was the last change of usage and configuration.
  bool set_again(Job& job, base::Instant now);
  const UsageLedger& usage() const { return usage_; }
  FairShare& fair_share() { return fair_share_; }
  UsageState save_usage() const;
  // REQUIRES: the jobs are in the books.
  void restore_usage(const UsageState& state, const std::vector<EndedJob>& ended,
                     base::Instant now);
  // Returns every account and user, parents before children.
  std::vector<ShareView> shares();

 private:
  const PriorityTotals& totals();
  base::Instant waits_since(const Job& job) const;
  std::int64_t fair_share_of(const Job& job);
  std::int64_t term_of(const Job& job);
  void forget_terms();

  const Cluster& cluster_;
  JobBooks& books_;
  gang::Turns& turns_;
  BasicPriorities basic_;
  UsageLedger usage_;
  bool keeps_ends_ = false;
  std::vector<JobCharged> charged_ends_;
  FairShare fair_share_;
  // The terms of fair share since the end of the period, or since usage was restored, by
  // AssociationIndex, as far as they have been asked for.
  std::vector<std::optional<std::int64_t>> terms_;
  PriorityTotals totals_;
  std::uint64_t totals_version_ = 0;
  std::optional<base::Instant> period_end_;
};

}  // namespace sched
