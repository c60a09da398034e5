// StartEstimates: when the first jobs of the queue will probably start with sched/builtin (8.3).
// Nothing is promised and nothing starts: the main pass alone does that, in the order of the queue.
//
// Each job is asked when it could start if the allocated jobs end with their time limits, and no
// job is preempted. A job is put off if one before it gets nodes of it:
//   as recorded (Slurm)   to the end of the job before it, if it would start before that; nodes
//                         count as a whole. That end may be that of a job on other nodes. Every
//                         node counts, whatever the job may use, and the order is that of QOS and
//                         priorities.
//   otherwise             to the latest end of those that get its nodes, and it is not expected
//                         before a job that is ahead of it in its partition: none overtakes.
//
// The work is done in steps, as that of the backfill is. Records that are still to come see what
// happens between two steps.
//
// Cost: O(records × Lookahead::will_run); kEstimatesMax records, unless bf_max_job_test is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/lookahead.h"
#include "scheduler/backfill/node_calendar.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/limits/resource_limits.h"
#include "scheduler/limits/time_limits.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/queue/admission.h"

namespace sched {

// The records of the queue that are looked at, if bf_max_job_test does not say how many.
inline constexpr int kEstimatesMax = 50;

// Returns the interval between two estimates: 30 s, or what the first key of SchedulerParameters
// says whose name ends in "interval" (sched_interval, else bf_interval), as Slurm reads it.
base::Duration estimates_interval(const ClusterParameters& parameters);

class StartEstimates {
 public:
  // The arguments must outlive this object.
  StartEstimates(const Cluster& cluster, const NodeGroups& groups, JobBooks& books,
                 const ResourceLimits& resource_limits, const Admission& admission,
                 const TimeLimits& limits, Lookahead& lookahead)
      : cluster_{cluster},
        groups_{groups},
        books_{books},
        limits_on_resources_{resource_limits},
        admission_{admission},
        limits_{limits},
        lookahead_{lookahead} {}

  void begin(base::Instant now);
  bool active() const { return plan_.has_value(); }
  // Estimates the next `records` records at most. Returns true if there are no more.
  // REQUIRES: active().
  bool step(base::Instant now, int records);

  // Returns until when estimates of the same state would be the same: version() of the books when
  // the last ones were complete, and an instant.
  std::uint64_t passed_version() const { return passed_version_; }
  base::Instant passed_until() const { return passed_until_; }

 private:
  struct Record {
    JobId job;
    PartitionIndex partition;
  };
  // Estimates under way.
  struct Plan {
    Plan(const Cluster& cluster, const JobBooks& books, base::Instant begun)
        : now{begun}, calendar{cluster, books, base::kNever} {}

    base::Instant now;  // in whole seconds, as all instants of the plan are
    std::vector<Record> records;
    std::size_t next = 0;
    std::map<JobId, Job::Plan> expected;
    NodeCalendar calendar;  // who gets which nodes before
    std::map<PartitionIndex, base::Instant> last_start;
    base::Instant previous_end{};
    base::Instant valid_until = base::kNever;
    std::uint64_t configuration = 0;  // of the cluster: what a rank and a partition are
  };

  void sort_by_priority(std::vector<Record>& records) const;
  bool finish();
  void tell_plans();
  void estimate(const Record& record, base::Instant now);
  NodeSet usable_nodes(const Job& job, PartitionIndex partition, base::Instant now);
  base::Instant put_off(const Record& record, const Lookahead::Answer& answer) const;

  const Cluster& cluster_;
  const NodeGroups& groups_;
  JobBooks& books_;
  const ResourceLimits& limits_on_resources_;
  const Admission& admission_;
  const TimeLimits& limits_;
  Lookahead& lookahead_;
  std::optional<Plan> plan_;
  std::set<JobId> told_;  // jobs with a reported estimate; some no longer have one
  std::uint64_t passed_version_ = 0;
  base::Instant passed_until_ = base::kNever;
};

}  // namespace sched
