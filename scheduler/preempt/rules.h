// The rules of preemption: which jobs may preempt which, how, and in which order (7.1 to 7.4).
#pragma once

#include <optional>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"

namespace sched::preempt {

// Returns true if a PreemptType is configured; plain GANG is not (3.6 step 2).
inline bool enabled(const Cluster& cluster) {
  return cluster.parameters().preempt_type != PreemptType::kNone;
}

// Returns how the allocated job would be preempted (7.1).
PreemptMode effective_mode(const Cluster& cluster, const Job& victim);

// Returns true if the pending job, tried in `partition`, may take the allocated one (7.2).
bool may_take(const Cluster& cluster, const Job& preemptor, PartitionIndex partition,
              const Job& victim);

// Checks the part of may_take() that is the same for all jobs of these partitions and QOS: where it
// is false, no priorities make may_take() true.
bool kind_may_take(const Cluster& cluster, const Job& preemptor, PartitionIndex partition,
                   const Job& victim);

// Minimum run time before the job may be preempted (7.3 step 5). Zero = none.
base::Duration exempt_time(const Cluster& cluster, const Job& victim);
// GraceTime of the victim's partition or QOS (7.8 step 1).
base::Duration grace_time(const Cluster& cluster, const Job& victim);

struct CandidateList {
  std::vector<Candidate> candidates;  // in the order of 7.4
  // When a job that is exempt now stops being so: the list may be longer from then on.
  base::Instant valid_until = base::kNever;
};
// 7.3 and 7.4. `allocated`: in job-table order. `missing`: jobs that hold such licenses are
// candidates on whichever nodes they are; null = none. Cost: O(allocated).
CandidateList candidates(const Cluster& cluster, const std::vector<const Job*>& allocated,
                         const Job& preemptor, PartitionIndex partition, base::Instant now,
                         const Licenses* missing = nullptr);

}  // namespace sched::preempt
