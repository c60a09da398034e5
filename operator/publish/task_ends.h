// TaskEnds: how the tasks of arrays have ended, which the status of an array keeps until
// kubegang-records has stored it (docs/design/records.md). Without records it keeps nothing.
#pragma once

#include <cstdint>

#include "api/job.h"
#include "base/time.h"
#include "operator/jobs/job_record.h"
#include "operator/jobs/recorded.h"

namespace control {

// Belongs to the loop's thread.
class TaskEnds {
 public:
  explicit TaskEnds(const Recorded& recorded) : recorded_{recorded} {}

  // Before a write of the array's status, of which `shown` has the tasks, and the ends that it
  // tells first: puts those before them that are to be kept of the stored status. Cost: the ends.
  void keep(JobRecord& array, kube::ArrayStatus& shown, base::Instant now);

  // The next write may drop ends that are recorded.
  bool awaits() const { return awaited_ > recorded_.version(); }

 private:
  const Recorded& recorded_;
  std::int64_t awaited_ = -1;  // the highest version with an end
};

}  // namespace control
