// The attempts of a Job of the batch group, and what follows from them: which is the next, which
// pods need not run again, how the batch Job has ended. Pure.
#pragma once

#include <optional>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "kube/api/batch_job.h"
#include "operator/managed/attempt_book.h"
#include "translation/batch_job_translation.h"

namespace control {

// Returns the batch Job that controls an object; null if none does. kubegang Jobs of other owners
// (a user, a gang of pods) do not count. Any version of the batch group is accepted, because a
// reference keeps the version under which it was written.
const kube::OwnerReference* batch_owner(const kube::ObjectMeta& metadata);

// Returns how a Job that is not tried again has ended, in the batch group's words where it has
// some: clients wait for these.
BatchView ended_view(const kube::JobStatus& status);

// REQUIRES: the attempt has not ended. Before the first status of a new Job is stored this says
// that it waits.
BatchView live_view(const kube::JobStatus& status);

// A summary of the attempts that have failed.
struct FailedAttempts {
  int attempts = 0;                    // the number of the next one
  int counted = 0;                     // of them, for backoffLimit
  std::optional<base::Instant> start;  // the earliest that is known
  std::optional<BatchView> verdict;    // podFailurePolicy ends the batch Job
};

// Counts failed attempts. The kubegang Job of an attempt may have been deleted since, so its label
// and the batch Job's status, `told`, are a lower bound, and each later attempt has the count of
// those before it.
FailedAttempts failed_attempts(const kube::BatchJobSpec& spec, const kube::BatchJobStatus& told,
                               const OurJobs& jobs);

// Returns the indexes, sorted, that have succeeded in any attempt and are not run again, of a batch
// Job whose pods follow one another. If the Jobs of attempts are gone, its own status, `told`, has
// them. A Job that is not Indexed only has their number, which is enough: such pods do not differ.
std::vector<int> succeeded_so_far(const kube::BatchJobSpec& spec, const kube::BatchJobStatus& told,
                                  const OurJobs& jobs);

}  // namespace control
