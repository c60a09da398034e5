// StartAttempt: the question whether a job could start in a partition now (3.4 steps 8 and 9). The
// answer is a verdict; it changes nothing. The caller decides what the verdict means for the
// job, for its partition and for the jobs behind it (main_pass.h, backfill_pass.h).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/limits/resource_limits.h"
#include "scheduler/model/cluster.h"
#include "scheduler/pass/availability.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/place/placement.h"

namespace sched {

// --- verdicts; `message` is a sentence for users ---
// It can start on this allocation now. Victims that are merely suspended are the gang's to stop.
struct Fits {
  Allocation allocation;
  SharingStatus sharing;
  std::optional<base::Duration> time_limit{};  // less than it asked for, if backfill says so
};
// It can start there when these victims have ended.
struct NeedsVictims {
  Allocation allocation;
  std::vector<Candidate> victims;
};
// So few nodes are left in the partition that no placement was tried.
struct TooFewLeft {
  std::string message;
};
// It can run when other jobs have ended.
struct Busy {
  std::string message;
};
// A node that it needs is down, drained or kept for other jobs.
struct NotAvailable {
  std::string message;
};
// It could not run on empty nodes either.
struct Never {
  std::string message;
};
// A limit of a QOS, an account or a user forbids the start.
struct OverLimit {
  Reason reason;
  std::string message;
};
using Verdict = std::variant<Fits, NeedsVictims, TooFewLeft, Busy, NotAvailable, Never, OverLimit>;

class StartAttempt {
 public:
  // The arguments must outlive this object.
  StartAttempt(const Cluster& cluster, const NodeGroups& groups, JobBooks& books,
               const ResourceLimits& limits)
      : cluster_{cluster},
        books_{books},
        placement_{cluster, groups, books.usage(), books.allocated()},
        limits_{limits} {}

  struct Answer {
    Verdict verdict;
    // Until when it holds if nothing else changes: an exempt time ends, for example.
    base::Instant valid_until = base::kNever;
  };
  // REQUIRES: the job is pending.
  Answer run(const Job& job, PartitionIndex partition, const Availability::View& available,
             base::Instant now);

 private:
  bool may_reclaim() const;
  Verdict verdict_of(const Job& job, PartitionIndex partition, PlacementOutcome outcome) const;

  const Cluster& cluster_;
  JobBooks& books_;
  Placement placement_;
  const ResourceLimits& limits_;
};

}  // namespace sched
