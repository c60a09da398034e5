#include "operator/managed/batch_attempts.h"

#include <algorithm>

#include "base/number_list.h"
#include "translation/members.h"
#include "translation/pod_failure_policy.h"

namespace control {
namespace {

using Phase = BatchView::Phase;

}  // namespace

const kube::OwnerReference* batch_owner(const kube::ObjectMeta& metadata) {
  const kube::OwnerReference* owner = kube::controller_of(metadata);
  const bool is_batch = owner != nullptr && owner->kind == kube::BatchJob::kResource.kind &&
                        owner->api_version.starts_with("batch/");
  return is_batch ? owner : nullptr;
}

BatchView ended_view(const kube::JobStatus& status) {
  BatchView view{.phase = Phase::kFailed,
                 .reason = "kubegang.io/" + std::string{kube::to_string(*status.state)},
                 .message = status.message,
                 .since = status.end_time,
                 .start = status.start_time,
                 .succeeded_indexes = status.succeeded_indexes};
  if (status.state == kube::JobState::kCompleted) view.phase = Phase::kComplete;
  if (status.state == kube::JobState::kTimeout) {
    view.reason = "DeadlineExceeded";
    view.message = "the time limit is over: activeDeadlineSeconds, or the partition's";
  }
  if (view.message.empty()) {
    view.message = "the kubegang Job ended as " + std::string{kube::to_string(*status.state)};
  }
  return view;
}

BatchView live_view(const kube::JobStatus& status) {
  const kube::Condition* accepted = kube::find_condition(status.conditions, kube::kAccepted);
  if (accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse &&
      !status.allocation) {
    return {.phase = Phase::kRefused, .reason = accepted->reason, .message = accepted->message};
  }
  if (!status.allocation) {
    return {.phase = Phase::kWaiting,
            .reason = status.reason.empty() ? "Queued" : status.reason,
            .message = status.message.empty() ? "the gang is in the queue" : status.message,
            .is_passing = !status.state};
  }
  // The instant comes from the stored status rather than from the clock, so a leader that takes
  // over before startTime is written writes the same one.
  const kube::Condition* ready = kube::find_condition(status.conditions, kube::kReady);
  return {.phase = Phase::kRunning,
          .since = ready == nullptr ? std::nullopt : ready->last_transition_time};
}

FailedAttempts failed_attempts(const kube::BatchJobSpec& spec, const kube::BatchJobStatus& told,
                               const OurJobs& jobs) {
  FailedAttempts failed;
  for (const auto& [uid, job] : jobs) {
    if (!is_final(job.status) || !has_failed(job.status)) continue;
    const FailureVerdict verdict = judge_failure(spec, job.status.exit_code.value_or(0));
    const bool counts = verdict.action != FailureAction::kIgnore;
    // The maximum, not a count: the Jobs of earlier attempts may be gone, and each label includes
    // the failures before its own.
    failed.attempts = std::max(failed.attempts, job.attempt + 1);
    failed.counted = std::max(failed.counted, job.failures + (counts ? 1 : 0));
    if (job.status.start_time && (!failed.start || *job.status.start_time < *failed.start)) {
      failed.start = job.status.start_time;
    }
    if (verdict.action == FailureAction::kFailJob) {
      failed.verdict =
          BatchView{.phase = Phase::kFailed,
                    .reason = "PodFailurePolicy",
                    .message = job.status.message + " matching FailJob rule at index " +
                               std::to_string(verdict.rule),
                    .since = job.status.end_time,
                    .start = job.status.start_time};
    }
  }
  // The number of the next attempt is at least the number of failures, so an attempt of which
  // neither the Job nor a later one exists is not made again. An ignored failure (action Ignore)
  // leaves no trace but its Job; if that is deleted, its number is used once more.
  failed.counted = std::max(failed.counted, static_cast<int>(told.failed));
  failed.attempts = std::max(failed.attempts, failed.counted);
  return failed;
}

std::vector<int> succeeded_so_far(const kube::BatchJobSpec& spec, const kube::BatchJobStatus& told,
                                  const OurJobs& jobs) {
  if (!has_followers(spec)) return {};
  std::vector<int> all = parse_indexes(told.completed_indexes);
  for (const auto& [uid, job] : jobs) {
    const std::vector<int> more = parse_indexes(job.succeeded);
    all.insert(all.end(), more.begin(), more.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (int index = 0; static_cast<int>(all.size()) < told.succeeded && index < kCompletionsMax;
       ++index) {
    const auto at = std::ranges::lower_bound(all, index);
    if (at == all.end() || *at != index) all.insert(at, index);
  }
  return all;
}

}  // namespace control
