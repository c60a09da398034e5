// UsageKeeper: keeps what the scheduler has counted as usage in the object UsageRecord `default`,
// from which a new leader goes on.
//
// Usage is charged in steps: at the end of each period and at the end of each run. The record says
// what was charged and, for each job with nodes, how far. It is one object, so the two always fit
// together, whichever write was the last. A new leader
//
//   1. takes usage and the jobs' counters as they are recorded;
//   2. charges a job that the record lists, and that has ended by its own status, for the rest;
//   3. charges a job that has started and ended since the record for all of its run time;
//   4. lets the other jobs go on from their counters.
//
// A job stays in the list until its end is stored in its own status. So a leader that still finds
// the job running does not charge it again, in whichever order the two writes were lost.
//
// The record is written when a period has ended and when jobs have ended, and rests after that for
// kRest, or for longer if it is so large that it would be more than kBytesPerSecond. A crash loses
// only what no status tells: the rest, since the record, of runs of jobs that were requeued or
// deleted in that time.
//
// Belongs to the loop's thread. Cost: a write O(associations + jobs with nodes), otherwise the jobs
// that have ended since the last call. Finished jobs cost nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "api/usage_record.h"
#include "operator/publish/mirror.h"
#include "operator/write/effect.h"
#include "scheduler/scheduler.h"

namespace control {

class UsageKeeper {
 public:
  static constexpr base::Duration kRest = std::chrono::seconds{5};
  static constexpr std::int64_t kBytesPerSecond = 16 << 10;

  // Null: it was deleted. The next change writes it again.
  void observe(const kube::UsageRecord* object);
  // Returns the stored record; null if there is none.
  const kube::UsageRecordSpec* stored() const {
    return mirror_.exists() ? &mirror_.stored() : nullptr;
  }

  // The write of the record, if it has changed and is due. Usage is counted under PriorityType
  // multifactor alone. `is_stored`: whether the status of that job is stored as it should be.
  using IsStored = std::function<bool(sched::JobId)>;
  std::optional<PutUsage> due(base::Instant now, sched::Scheduler& scheduler,
                              const IsStored& is_stored);
  WriteEnd answered(const UsagePut& outcome, base::Instant now);
  base::Instant next_due() const;

 private:
  void take(base::Instant now, const sched::Scheduler& scheduler, const IsStored& is_stored);

  Mirror<kube::UsageRecord, &kube::UsageRecord::spec, IfGone::kCreate> mirror_;
  std::map<sched::JobId, base::Duration> ended_;  // charged, and maybe not stored as ended
  bool has_news_ = false;                         // since the record was taken
  base::Instant rests_until_{};
  base::Instant period_began_{};  // of what was taken
};

}  // namespace control
