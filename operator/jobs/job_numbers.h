// JobNumbers: gives each job its number. Numbers are reserved in blocks, by one write to
// SchedulerConfig.status.nextJobID for each block, so that no two leaders give the same one; what
// is left of a block after a crash is skipped. A block is enough for all jobs that wait for it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "operator/publish/attempts.h"
#include "operator/write/effect.h"
#include "scheduler/model/job.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the number of jobs that wait. Invariant:
// [next, end) is reserved in the API server, and no job has a number of it.
class JobNumbers {
 public:
  // Begins as a new leader: all numbers below may be in use, none is reserved.
  void restore(std::int64_t first_unused) { next_ = end_ = first_unused; }
  std::int64_t first_unused() const { return next_; }

  // Returns nullopt while none is reserved: the job waits, and `answered` names it.
  std::optional<sched::JobId> next(const std::string& job_uid);

  // Returns the write of the next block, if a job waits and none is under way. `config` is
  // SchedulerConfig/default as it is stored; null: it must be made.
  std::optional<ReserveIds> due(base::Instant now, const std::string* config_version);
  // Returns the UIDs of the jobs that may go on, in the order in which they asked.
  std::vector<std::string> answered(const IdsReserved& outcome, base::Instant now);
  base::Instant next_due(base::Instant now) const;

 private:
  std::int64_t next_ = 0;
  std::int64_t end_ = 0;
  std::vector<std::string> waiting_;  // UIDs, in the order in which they asked
  std::set<std::string> asked_;       // the same
  Attempts attempts_{
      {.first = std::chrono::milliseconds{200}, .max = std::chrono::milliseconds{200}}};
};

}  // namespace control
