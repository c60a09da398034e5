// PodTrials: a job that waits has one of its pods tried at the API server (dryRun=All,
// architecture.md 5): what a quota, a LimitRange or Pod Security would refuse is said while it
// waits, not only at its start. It only informs: the job stays in the queue, since what refuses it
// may change. Jobs whose pods the API server cannot tell apart share a trial: one of a sweep of
// thousands is tried for all.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/time.h"
#include "operator/jobs/job_record.h"
#include "operator/publish/inform_budget.h"
#include "operator/write/effect.h"
#include "scheduler/model/config.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the number of trials for each job.
class PodTrials {
 public:
  // Returns null for a job that is no longer known.
  using FindJob = std::function<const JobRecord*(const std::string& uid)>;

  // REQUIRES: called in order of submission.
  void add(const std::string& job_uid) { to_try_.push_back(job_uid); }

  // Returns as many as the budget pays for. A job that no longer waits is left out, and one that is
  // like another of which a pod is being tried takes that answer.
  std::vector<TryPod> due(InformBudget& budget, const FindJob& find,
                          const sched::Configuration& configuration);
  // UIDs of the jobs for which the outcome counts, the one that was tried first. If the API server
  // could not say, those are tried again that are like it.
  std::vector<std::string> answered(const PodTried& outcome);
  base::Instant next_due(base::Instant now) const;

 private:
  // Namespace, partition, CPUs and memory of the pod, hash of the template.
  using Shape = std::tuple<std::string, std::string, int, std::optional<kube::Bytes>, std::size_t>;
  static Shape shape_of(const JobRecord& job, const TryPod& trial);

  std::deque<std::string> to_try_;                         // UIDs
  std::map<Shape, std::string> under_way_;                 // the job whose pod is being tried
  std::map<std::string, std::vector<std::string>> alike_;  // by that job: the jobs like it
};

// Returns the smallest pod that the job could have, on a node of its first partition; nullopt if
// there is no such node. Pure.
std::optional<TryPod> trial_of(const JobRecord& job, const sched::Configuration& configuration);

// Why the API server would refuse the job's pods; "" when it would not, or could not say.
std::string refusal_of(const PodTried& outcome);

}  // namespace control
