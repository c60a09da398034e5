// PodTrials: a job that waits has one of its pods tried at the API server (dryRun=All,
// architecture.md 5): what a quota, a LimitRange or Pod Security would refuse is said while it
// waits, not only at its start. It only informs: the job stays in the queue, since what refuses it
// may change.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "operator/jobs/job_record.h"
#include "operator/publish/inform_budget.h"
#include "operator/write/effect.h"
#include "scheduler/model/config.h"

namespace control {

// The jobs of which a pod is to be tried, in order of submission. Belongs to the loop's thread.
class PodTrials {
 public:
  // Null: not known any more.
  using FindJob = std::function<const JobRecord*(const std::string& uid)>;

  void add(const std::string& job_uid) { to_try_.push_back(job_uid); }

  // As many as the budget pays for. A job that waits no more is left out.
  std::vector<TryPod> due(InformBudget& budget, const FindJob& find,
                          const sched::Configuration& configuration);
  base::Instant next_due(base::Instant now) const;

 private:
  std::deque<std::string> to_try_;  // UIDs
};

// The smallest pod that the job could have, on a node of its first partition; nothing when there is
// no such node. Pure.
std::optional<TryPod> trial_of(const JobRecord& job, const sched::Configuration& configuration);

// Why the API server would refuse the job's pods; "" when it would not, or could not say.
std::string refusal_of(const PodTried& outcome);

}  // namespace control
