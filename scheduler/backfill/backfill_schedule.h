// BackfillSchedule: when a pass of the backfill, or with sched/builtin the estimates of starts, are
// made under the scheduler's own timing: every bf_interval, if anything may have changed. A pass is
// made in steps; between two of them the caller gets to do what is more urgent.
#pragma once

#include <optional>

#include "base/time.h"
#include "scheduler/backfill/backfill_pass.h"
#include "scheduler/backfill/start_estimates.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/queue/job_queue.h"

namespace sched {

class BackfillSchedule {
 public:
  // The arguments must outlive this object.
  BackfillSchedule(const Cluster& cluster, const JobBooks& books, const JobQueue& queue,
                   BackfillPass& pass, StartEstimates& estimates)
      : cluster_{cluster}, books_{books}, queue_{queue}, pass_{pass}, estimates_{estimates} {}

  // Plans are not reported from now on, so sched/builtin, which only estimates, does
  // nothing.
  void tell_no_plans() { tells_plans_ = false; }
  // Sets the least interval of passes, from the next one on.
  void rest_at_least(base::Duration rest) { rest_min_ = rest; }

  // Returns when the next step is due, not before now; nullopt = none is unless something changes.
  std::optional<base::Instant> next_due(base::Instant now) const;
  bool is_due(base::Instant now) const {
    const std::optional<base::Instant> due = next_due(now);
    return due && *due <= now;
  }
  // Makes one step. REQUIRES: it is due.
  void run(base::Instant now);

 private:
  bool estimates_only() const {
    return cluster_.parameters().scheduler == SchedulerType::kBuiltin;
  }
  // `pass`: BackfillPass or StartEstimates.
  template <typename Pass>
  std::optional<base::Instant> next_due_of(const Pass& pass, base::Instant now) const;

  const Cluster& cluster_;
  const JobBooks& books_;
  const JobQueue& queue_;
  BackfillPass& pass_;
  StartEstimates& estimates_;
  bool tells_plans_ = true;
  base::Duration rest_min_{0};
  base::Instant next_{base::Instant::min()};  // no pass begins before
};

}  // namespace sched
