// The kubegang Jobs that run one batch Job, an attempt each, and what follows from them: which
// attempt is the next, which pods need not run again, how the batch Job has ended. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "kube/api/batch_job.h"
#include "translation/batch_job_translation.h"

namespace control {

// The facts about one of our Jobs.
struct OurJob {
  kube::ObjectKey key;
  int attempt = 0;
  int failures = 0;         // attempts before it that count
  kube::JobStatus status;   // as stored
  std::string succeeded{};  // pods, as stored; where pods follow one another
  std::string version{};    // in which `status` is stored
  bool deleted = false;     // the object is gone, pods are left
  bool is_going = false;    // it is being deleted, something keeps the object
  bool taken_away = false;  // its deletion has ended it, the object is left
  // The answer to its creation, at that instant, is all there is.
  std::optional<base::Instant> unseen_since{};
  std::int32_t active = 0;       // pods that have not ended
  std::int32_t ready = 0;        // of them
  std::int32_t terminating = 0;  // deleted, and still there
  bool is_in_motion = false;     // these numbers are about to change by themselves
  base::Instant asked_at{};      // for its deletion
  std::string asked_version{};   // which was to be deleted
};
using OurJobs = std::map<std::string, OurJob>;  // by UID

// Returns the batch Job that controls an object; null if none does. kubegang Jobs of other owners
// (a user, a gang of pods) do not count. Any version of the batch group is accepted, because a
// reference keeps the version under which it was written.
const kube::OwnerReference* batch_owner(const kube::ObjectMeta& metadata);

// Reads from the labels of a kubegang Job its attempt, and how many before it count as failures.
int attempt_of(const kube::ObjectMeta& metadata);
int failures_before(const kube::ObjectMeta& metadata);

bool is_final(const kube::JobStatus& status);

// Returns true if the gang was canceled only because its Job was deleted, while something keeps the
// Job: another finalizer, or a deletion in the foreground. That is not a result: a Job that is
// deleted at once leaves none either.
bool is_taken_away(const kube::Job& object, const kube::JobStatus& status);

// Returns true if the attempt failed by itself. Such an attempt is followed by another one, as far
// as backoffLimit and podFailurePolicy allow. Timeout, Cancelled, Preempted and Deadline are not
// among them: they would happen again, or a user or administrator wanted them.
bool has_failed(const kube::JobStatus& status);

// Returns how long the next attempt waits: 10 s after the first failure, doubled for each further
// one, and 6 min at most. REQUIRES: failures >= 1.
base::Duration back_off(int failures);

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
