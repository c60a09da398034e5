#include "operator/adopt/adopted_jobs.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"
#include "operator/translate/pod_failure_policy.h"
#include "operator/translate/sentences.h"

namespace control {
namespace {

using Phase = BatchView::Phase;

constexpr int kBackoffLimit = 6;  // the batch group's default
// Between attempts, as the batch group's controller has it.
constexpr base::Duration kBackOffFirst = std::chrono::seconds{10};
constexpr base::Duration kBackOffMax = std::chrono::minutes{6};
// What only informs is gathered so long: the pods of a gang become ready one after the other.
constexpr base::Duration kGather = std::chrono::seconds{3};
constexpr base::Duration kDeleteAgain = std::chrono::seconds{10};
// An answered creation that no watch has shown for so long: it was deleted at once.
constexpr base::Duration kUnseen = std::chrono::seconds{30};

const kube::OwnerReference* batch_owner(const kube::ObjectMeta& metadata) {
  const kube::OwnerReference* owner = kube::controller_of(metadata);
  const bool is_batch = owner != nullptr && owner->kind == kube::BatchJob::kResource.kind &&
                        owner->api_version.starts_with("batch/");
  return is_batch ? owner : nullptr;
}

int number_in(const kube::ObjectMeta& metadata, std::string_view name, int absent) {
  const auto label = metadata.labels.find(std::string{name});
  if (label == metadata.labels.end()) return absent;
  int number = absent;
  const std::string& text = label->second;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int attempt_of(const kube::ObjectMeta& metadata) {
  return number_in(metadata, kube::kLabelAttempt, 0);
}

// A Job of a version without this label: each attempt before it counts.
int failures_before(const kube::ObjectMeta& metadata) {
  return number_in(metadata, kube::kLabelFailures, attempt_of(metadata));
}

bool is_final(const kube::JobStatus& status) {
  return status.state && kube::is_final(*status.state);
}

// The program's own failure: it is tried again, as far as backoffLimit and podFailurePolicy allow.
bool has_failed(const kube::JobStatus& status) {
  return status.state == kube::JobState::kFailed || status.state == kube::JobState::kOutOfMemory ||
         status.state == kube::JobState::kNodeFail;
}

base::Duration back_off(int failures) {
  const base::Duration wait = kBackOffFirst * (std::int64_t{1} << std::min(failures - 1, 10));
  return std::min(wait, kBackOffMax);
}

// Returns how a Job that is not tried again has ended, in the batch group's words where it has
// some: clients wait for these.
BatchView ended_view(const kube::JobStatus& status) {
  BatchView view{.phase = Phase::kFailed,
                 .reason = "kubegang.io/" + std::string{kube::to_string(*status.state)},
                 .message = status.message,
                 .since = status.end_time,
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
            .message = status.message.empty() ? "the gang is in the queue" : status.message};
  }
  const kube::Condition* ready = kube::find_condition(status.conditions, kube::kReady);
  return {.phase = Phase::kRunning,
          .since = ready == nullptr ? std::nullopt : ready->last_transition_time};
}

// Returns true if clients wait for this difference. The rest only informs.
bool is_urgent(const kube::BatchJobStatus& stored, const kube::BatchJobStatus& wanted) {
  if (stored.failed != wanted.failed) return true;
  for (const std::string_view type :
       {kube::kBatchComplete, kube::kBatchFailed, kube::kBatchSuspended, kube::kBatchAccepted}) {
    const kube::Condition* before = kube::find_condition(stored.conditions, type);
    const kube::Condition* now = kube::find_condition(wanted.conditions, type);
    if (now != nullptr && (before == nullptr || before->status != now->status)) return true;
  }
  return false;
}

bool says_only_why(const kube::BatchJobStatus& stored, kube::BatchJobStatus wanted) {
  wanted.conditions = stored.conditions;
  return wanted == stored;
}

}  // namespace

void AdoptedJobs::observe(const Changes<kube::BatchJob>& changes) {
  for (const auto& [key, object] : changes) {
    const auto known = uids_.find(key);
    if (known != uids_.end() && (object == nullptr || object->metadata.uid != known->second)) {
      // Our Jobs of it go by garbage collection, or stay as they are.
      Adopted& gone = adopted_.at(known->second);
      gone.object = nullptr;
      timers_.erase({std::exchange(gone.timer, base::kNever), known->second});
      if (gone.jobs.empty()) adopted_.erase(known->second);
      uids_.erase(known);
    }
    if (object == nullptr) continue;
    const std::string& uid = object->metadata.uid;
    uids_[key] = uid;
    Adopted& adopted = adopted_[uid];
    if (adopted.object == nullptr) {
      adopted.status = StatusMirror<kube::BatchJob>{*object};
    } else {
      (void)adopted.status.saw(*object);
    }
    adopted.object = object;
    touched_.insert(uid);
  }
}

void AdoptedJobs::observe_job(const JobRecord& record) {
  if (batch_owner(record.object->metadata) == nullptr) return;
  OurJob job{.key = record.key,
             .attempt = attempt_of(record.object->metadata),
             .failures = failures_before(record.object->metadata),
             .status = record.status.stored(),
             .deleted = record.deleted};
  for (const auto& [name, pod] : record.pods) {
    // The batch group's own counting: `active` are pods that have not finished, `terminating` those
    // of them that are being deleted, `ready` by their condition.
    if (is_finished(*pod) || record.stale_pods.contains(name)) continue;
    if (pod->metadata.deletion_timestamp) {
      ++job.terminating;
      continue;
    }
    ++job.active;
    if (kube::is_true(pod->status.conditions, "Ready")) ++job.ready;
  }
  put_job(*record.object, std::move(job));
}

void AdoptedJobs::observe_ended(const kube::Job& object) {
  if (batch_owner(object.metadata) == nullptr) return;
  put_job(object, {.key = kube::key_of(object.metadata),
                   .attempt = attempt_of(object.metadata),
                   .failures = failures_before(object.metadata),
                   .status = object.status});
}

void AdoptedJobs::put_job(const kube::Job& object, OurJob job) {
  const std::string& owner = batch_owner(object.metadata)->uid;
  owners_[object.metadata.uid] = owner;
  adopted_[owner].jobs[object.metadata.uid] = std::move(job);
  touched_.insert(owner);
}

void AdoptedJobs::forget_job(const std::string& uid) {
  const auto known = owners_.extract(uid);
  if (!known) return;
  const auto adopted = adopted_.find(known.mapped());
  if (adopted == adopted_.end()) return;
  adopted->second.jobs.erase(uid);
  touched_.insert(adopted->first);
  if (adopted->second.object == nullptr && adopted->second.jobs.empty()) adopted_.erase(adopted);
}

StatusMirror<kube::BatchJob>* AdoptedJobs::find_status(const std::string& uid) {
  const auto found = adopted_.find(uid);
  const bool exists = found != adopted_.end() && found->second.object != nullptr;
  return exists ? &found->second.status : nullptr;
}

void AdoptedJobs::look_again(const std::string& uid) {
  if (adopted_.contains(uid)) touched_.insert(uid);
}

void AdoptedJobs::answered(const JobCreated& outcome, base::Instant now) {
  const auto found = adopted_.find(outcome.owner_uid);
  if (found == adopted_.end()) return;
  Adopted& adopted = found->second;
  touched_.insert(outcome.owner_uid);
  if (outcome.result.ok()) {
    adopted.creation.succeeded();
    adopted.refusal.clear();
    const kube::Job& job = *outcome.result;
    owners_[job.metadata.uid] = outcome.owner_uid;
    // Noted at once: the watch may lag, and a second attempt must not be made in the meantime.
    adopted.jobs.try_emplace(job.metadata.uid, OurJob{.key = kube::key_of(job.metadata),
                                                      .attempt = attempt_of(job.metadata),
                                                      .failures = failures_before(job.metadata),
                                                      .seen = false});
    adopted.asked_at = now;  // of one that is not seen
    return;
  }
  const base::Error& error = outcome.result.error();
  // The first attempt takes the batch Job's own name, which users look for. If another Job has it,
  // a suffix is added.
  if (error.code == base::Code::kAlreadyExists && std::exchange(adopted.plain_name, false)) {
    return adopted.creation.lost_race();
  }
  adopted.creation.failed(now);
  const bool is_refusal = error.code == base::Code::kInvalidArgument ||
                          error.code == base::Code::kPermissionDenied ||
                          error.code == base::Code::kAlreadyExists;
  if (is_refusal) adopted.refusal = error.message;
  report_.warn("kubegang job not made",
               "of=" + outcome.owner_uid + " error=\"" + error.message + "\"");
}

std::vector<Effect> AdoptedJobs::due(InformBudget& budget, base::Instant now) {
  std::vector<Effect> effects;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::string uid = timers_.extract(timers_.begin()).value().second;
    adopted_.at(uid).timer = base::kNever;
    touched_.insert(uid);
  }
  for (const std::string& uid : std::exchange(touched_, {})) {
    const auto found = adopted_.find(uid);
    if (found == adopted_.end() || found->second.object == nullptr) continue;
    look(uid, found->second, now, effects);
    write(uid, found->second, budget, now, effects);
  }
  return effects;
}

void AdoptedJobs::look(const std::string& uid, Adopted& adopted, base::Instant now,
                       std::vector<Effect>& effects) {
  const kube::BatchJob& object = *adopted.object;
  // What is being deleted says nothing new; its dependents are the garbage collector's.
  if (object.metadata.deletion_timestamp || kube::is_finished(adopted.status.stored())) return;
  const BatchView view = view_of(adopted, now, effects);
  if (adopted.creation.due() > now && adopted.creation.due() != base::kNever) {
    set_timer(uid, adopted, adopted.creation.due());
  }
  if (view.phase == Phase::kStopping) set_timer(uid, adopted, now + kDeleteAgain);
  tell_refusal(adopted, view);
  adopted.status.wanted() = batch_status_after(object.spec, adopted.status.stored(), view, now);
}

// Our Job of an attempt may have been deleted since. What its label and the batch Job's status say
// is therefore a lower bound, and each later attempt has the count of those before it.
AdoptedJobs::Failed AdoptedJobs::failed_attempts(const Adopted& adopted) {
  Failed failed;
  for (const auto& [uid, job] : adopted.jobs) {
    if (!is_final(job.status) || !has_failed(job.status)) continue;
    const FailureVerdict verdict =
        judge_failure(adopted.object->spec, job.status.exit_code.value_or(0));
    const bool counts = verdict.action != FailureAction::kIgnore;
    failed.attempts = std::max(failed.attempts, job.attempt + 1);
    failed.counted = std::max(failed.counted, job.failures + (counts ? 1 : 0));
    if (verdict.action == FailureAction::kFailJob) {
      failed.verdict =
          BatchView{.phase = Phase::kFailed,
                    .reason = "PodFailurePolicy",
                    .message = job.status.message + " matching FailJob rule at index " +
                               std::to_string(verdict.rule),
                    .since = job.status.end_time};
    }
  }
  failed.counted = std::max(failed.counted, static_cast<int>(adopted.status.stored().failed));
  failed.attempts = std::max(failed.attempts, failed.counted);
  return failed;
}

BatchView AdoptedJobs::view_of(Adopted& adopted, base::Instant now, std::vector<Effect>& effects) {
  const Failed failed = failed_attempts(adopted);
  const kube::BatchJobSpec& spec = adopted.object->spec;
  if (!spec.suspend) adopted.is_stopping = false;
  BatchView view;
  const OurJob* present = nullptr;
  for (auto at = adopted.jobs.begin(); at != adopted.jobs.end();) {
    // Made and deleted before any watch has shown it.
    if (!at->second.seen && now >= adopted.asked_at + kUnseen) {
      owners_.erase(at->first);
      at = adopted.jobs.erase(at);
      continue;
    }
    if (at->second.attempt == failed.attempts && !at->second.deleted) present = &at->second;
    ++at;
  }
  // The order decides: a result stands whatever the spec says now, the limit of failures comes
  // before a suspension, and only a Job that is neither finished nor suspended is made.
  if (present != nullptr && is_final(present->status)) {
    view = ended_view(present->status);
  } else if (failed.verdict) {
    view = *failed.verdict;
  } else if (failed.counted > spec.backoff_limit.value_or(kBackoffLimit)) {
    view = {.phase = Phase::kFailed,
            .reason = "BackoffLimitExceeded",
            .message = "Job has reached the specified backoff limit"};
  } else if (spec.suspend) {
    view = view_of_suspended(adopted, now, effects);
  } else if (present == nullptr) {
    view = view_without_job(adopted, failed, now, effects);
  } else {
    view = live_view(present->status);
    view.active = present->active;
    view.ready = present->ready;
    view.terminating = present->terminating;
    if (!present->seen)
      set_timer(adopted.object->metadata.uid, adopted, adopted.asked_at + kUnseen);
  }
  view.failed = failed.counted;
  return view;
}

BatchView AdoptedJobs::view_of_suspended(Adopted& adopted, base::Instant now,
                                         std::vector<Effect>& effects) {
  BatchView view{.phase = Phase::kSuspended};
  // batch/v1: suspending a Job deletes its pods, and resuming it starts them anew. So the Job
  // behind it is deleted, which is asked for again until it is gone.
  const bool asks = now >= adopted.asked_at + kDeleteAgain || !adopted.is_stopping;
  adopted.is_stopping = true;
  for (const auto& [uid, job] : adopted.jobs) {
    if (is_final(job.status) && !job.deleted) continue;
    view.phase = Phase::kStopping;
    view.active += job.active;
    view.terminating += job.terminating;
    if (job.deleted || !asks) continue;
    adopted.asked_at = now;
    effects.emplace_back(DeleteJob{job.key, uid});
  }
  return view;
}

// The present attempt has no Job yet.
BatchView AdoptedJobs::view_without_job(Adopted& adopted, const Failed& failed, base::Instant now,
                                        std::vector<Effect>& effects) {
  // Pods of the one before it may be left after a suspension, under the same host names.
  for (const auto& [uid, job] : adopted.jobs) {
    if (!job.deleted) continue;
    return {.phase = Phase::kStopping, .active = job.active, .terminating = job.terminating};
  }
  Attempt attempt{
      .number = failed.attempts, .failures = failed.counted, .plain_name = adopted.plain_name};
  for (const auto& [uid, job] : adopted.jobs) {
    if (job.status.run_time) attempt.ran += job.status.run_time->elapsed;
    if (job.attempt == failed.attempts - 1 && job.status.end_time) {
      attempt.not_before = *job.status.end_time + back_off(failed.attempts);
    }
  }
  const auto deadline = adopted.object->spec.active_deadline_seconds;
  if (deadline && failed.attempts > 0 && attempt.ran >= std::chrono::seconds{*deadline}) {
    return {.phase = Phase::kFailed,
            .reason = "DeadlineExceeded",
            .message = "Job was active longer than specified deadline"};
  }
  BatchVerdict verdict = translate_batch_job(*adopted.object, attempt);
  if (!verdict.problems.empty()) {
    return {
        .phase = Phase::kRefused, .reason = "NotSupported", .message = joined(verdict.problems)};
  }
  if (adopted.creation.may_begin(now)) {
    adopted.creation.begin();
    effects.emplace_back(CreateJob{std::move(verdict.job)});
  }
  if (!adopted.refusal.empty()) {
    return {.phase = Phase::kRefused, .reason = "NotMade", .message = adopted.refusal};
  }
  return {.phase = Phase::kWaiting,
          .reason = "Queued",
          .message = "the gang is on its way into the queue"};
}

void AdoptedJobs::tell_refusal(Adopted& adopted, const BatchView& view) {
  const std::string message = view.phase == Phase::kRefused ? view.message : "";
  if (std::exchange(adopted.told_refusal, message) == message || message.empty()) return;
  const kube::Condition* told =
      kube::find_condition(adopted.status.stored().conditions, kube::kBatchAccepted);
  if (told != nullptr && told->message == message) return;  // by a leader before us
  report_.event(kube::reference_to(*adopted.object), true, "Refused", message);
}

void AdoptedJobs::write(const std::string& uid, Adopted& adopted, InformBudget& budget,
                        base::Instant now, std::vector<Effect>& effects) {
  StatusMirror<kube::BatchJob>& mirror = adopted.status;
  if (mirror.wanted() == mirror.stored()) {
    adopted.differs_since = base::kNever;
    return;
  }
  if (mirror.is_in_flight()) return;  // its answer touches it
  if (!mirror.may_write(now)) return set_timer(uid, adopted, mirror.due());
  if (!is_urgent(mirror.stored(), mirror.wanted())) {
    if (adopted.differs_since == base::kNever) adopted.differs_since = now;
    // Three degrees: what clients wait for goes out at once; numbers of pods are gathered for a
    // moment; mere reasons go through the budget, once a minute for each object.
    const bool only_informs = says_only_why(mirror.stored(), mirror.wanted());
    base::Instant at = adopted.differs_since + kGather;
    if (only_informs && mirror.informed_at() > base::Instant{}) {
      at = std::max(at, mirror.informed_at() + InformBudget::kObjectPeriod);
    }
    if (at > now) return set_timer(uid, adopted, at);
    if (only_informs && !budget.has_one())
      return set_timer(uid, adopted, now + InformBudget::kLookAgain);
    if (only_informs) budget.spend_one();
    mirror.mark(only_informs ? WriteUrgency::kInforms : WriteUrgency::kUrgent);
  } else {
    mirror.mark(WriteUrgency::kUrgent);
  }
  adopted.differs_since = base::kNever;
  effects.emplace_back(PatchStatus<kube::BatchJob>{.point = WritePoint::kAdoptedStatus,
                                                   .from = mirror.object_with(mirror.stored()),
                                                   .to = mirror.object_with(mirror.wanted())});
  mirror.begin(now);
}

void AdoptedJobs::set_timer(const std::string& uid, Adopted& adopted, base::Instant at) {
  if (adopted.timer <= at) return;
  timers_.erase({adopted.timer, uid});
  adopted.timer = at;
  timers_.emplace(at, uid);
}

base::Instant AdoptedJobs::next_due(base::Instant now) const {
  base::Instant due = touched_.empty() ? base::kNever : now;
  if (!timers_.empty()) due = std::min(due, timers_.begin()->first);
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
