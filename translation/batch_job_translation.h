// Jobs of the batch group that say `managedBy: kubegang.io/job`: the kubegang Job for each, and
// what its status has to say. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/api/batch_job.h"
#include "kube/api/raw_json.h"

namespace control {

// The attempt at the batch Job: each is a Job of its own, and each but the last has failed.
struct Attempt {
  int number = 0;                             // from 0
  int failures = 0;                           // attempts before it that count for backoffLimit
  base::Duration ran{0};                      // of the attempts before it; counts for the deadline
  std::optional<base::Instant> not_before{};  // the batch group's back-off between attempts
  bool plain_name = true;                     // false: the batch Job's own name is taken
  // The indexes, sorted, that are not run again, of a batch Job whose pods follow one another.
  std::vector<int> succeeded{};
};

struct BatchVerdict {
  std::vector<std::string> problems;  // whole sentences; empty = legal
  kube::Job job;                      // to be created; of no meaning when there are problems
};

// Translates a batch Job. A pod is a task: parallelism, or what is left of completions, becomes
// tasks; if more pods must succeed, completions says so. The CPU requests of its containers (limits
// where there are none) cpusPerTask, and their memory memoryPerCPU. activeDeadlineSeconds becomes
// the time limit. The template stays as it is, but for what the API server writes into each
// (schedulerName, a grace period of 30 s) and the restart policy OnFailure (run_otherwise), and
// gets JOB_COMPLETION_INDEX as the batch group's controller gives it. A batch Job with its
// judged_template gives a Job with that; everything else is the same. REQUIRES: `batch` has its
// template, or what is judged of it.
BatchVerdict translate_batch_job(const kube::BatchJob& batch, const Attempt& attempt);

// Returns the sentence about what is run in another way than its author wrote; "" if nothing is.
std::string run_otherwise(const kube::BatchJob& batch);

// Returns the template of the kubegang Job for `batch`, which has its own as it is stored.
// kConflict: it is not the one that was judged.
base::Result<kube::RawJson> pod_template_of(const kube::BatchJob& batch,
                                            const kube::RawJson& judged);

// Returns how many pods must succeed; for a work queue (no completions), all that it has at once.
std::int32_t completions_of(const kube::BatchJobSpec& spec);
// Returns true if they are more than run at once.
bool has_followers(const kube::BatchJobSpec& spec);
// activeDeadlineSeconds, at most 100 years; nullopt = it has none.
std::optional<base::Duration> deadline_of(const kube::BatchJobSpec& spec);

// The state of a batch Job, from which its status follows.
struct BatchView {
  enum class Phase {
    kRefused,    // no Job can be made for it: `message`
    kSuspended,  // by spec.suspend; no pod is left
    kStopping,   // the same, while pods are left
    kWaiting,    // for nodes: `reason`, `message`
    kRunning,    // pods exist, or are being made
    kComplete,   // all have succeeded; no pod is left
    kFailed      // `reason`, `message`; no pod is left
  };
  Phase phase = Phase::kWaiting;
  std::string reason{};
  std::string message{};
  std::optional<base::Instant> since{};  // kRunning: the start; kComplete, kFailed: the end
  std::optional<base::Instant> start{};  // kComplete, kFailed: the start, if it is known
  std::int32_t active = 0;               // pods that have not ended
  std::int32_t ready = 0;                // of them
  std::int32_t terminating = 0;          // pods that are deleted and still there
  // "0,2-3". kComplete: empty stands for all. Else those of a batch Job whose pods follow one
  // another, of all attempts so far.
  std::string succeeded_indexes{};
  std::int32_t failed = 0;  // attempts that count for backoffLimit
  // More will follow soon by itself: this status is out of date a moment later.
  bool is_passing = false;
};

// Returns the status that follows `stored`, so that the API server takes it: startTime changes only
// with the suspension, the counters of failures and successes never go back (successes of a gang
// are counted at its end), Complete comes with SuccessCriteriaMet, Failed with FailureTarget,
// neither with active pods. Equal to `stored` if there is nothing new. SOURCE:
// pkg/registry/batch/job/strategy.go and pkg/apis/batch/validation of Kubernetes; e2e/contract
// tries it on a real API server.
kube::BatchJobStatus batch_status_after(const kube::BatchJobSpec& spec,
                                        const kube::BatchJobStatus& stored, const BatchView& view,
                                        base::Instant now);

}  // namespace control
