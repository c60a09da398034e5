#include "operator/adopt/adopted_jobs.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "base/number_list.h"
#include "operator/gang/gang_observation.h"
#include "operator/gang/success_policy.h"
#include "translation/members.h"
#include "translation/sentences.h"

namespace control {
namespace {

using Phase = BatchView::Phase;

constexpr int kBackoffLimit = 6;  // the batch group's default
// The time for which differences that only inform are gathered: a short life ends meanwhile, and is
// written at its end.
constexpr base::Duration kGather = std::chrono::seconds{3};
// Numbers that are about to change: the pods of a gang become ready one after the other, and its
// own end follows that of its last pod. A gang that starts as it should is ready before that, even
// after a few seconds of settling; an image that is pulled for minutes is worth a write.
constexpr base::Duration kGatherPassing = std::chrono::seconds{10};
// The same while more important writes wait: most of what it waits for is then the API server.
constexpr base::Duration kGatherPassingWhenBusy = InformBudget::kObjectPeriod;
constexpr base::Duration kDeleteAgain = std::chrono::seconds{10};
// An answered creation that no watch has shown for this time: it was deleted at once.
constexpr base::Duration kUnseen = std::chrono::seconds{30};
// The time for which a kubegang Job that has nodes is left alone beside a batch Job that has ended:
// its watch may lag behind that of batch Jobs, and kubelets report again what a restored etcd has
// forgotten. Most such Jobs end by that, and their pods keep their logs.
constexpr base::Duration kEndsByItself = std::chrono::seconds{30};

// Returns true if something waits for this difference: `kubectl wait` and controllers above, such
// as a CronJob's, for the conditions, and the next attempt for the count of failures, which would
// be lost if the failed kubegang Job were deleted first. A suspension waits for the count of
// successes. The rest only informs.
bool is_urgent(const kube::BatchJobSpec& spec, const kube::BatchJobStatus& stored,
               const kube::BatchJobStatus& wanted) {
  if (stored.failed != wanted.failed) return true;
  if (spec.suspend && stored.succeeded != wanted.succeeded) return true;
  for (const std::string_view type :
       {kube::kBatchComplete, kube::kBatchFailed, kube::kBatchSuspended, kube::kBatchAccepted}) {
    const kube::Condition* before = kube::find_condition(stored.conditions, type);
    const kube::Condition* now = kube::find_condition(wanted.conditions, type);
    if (now != nullptr && (before == nullptr || before->status != now->status)) return true;
  }
  return false;
}

// Returns true if nothing differs but conditions. The counts of a new batch Job are absent, which
// means 0.
bool says_only_why(kube::BatchJobStatus stored, kube::BatchJobStatus wanted) {
  stored.conditions.clear();
  wanted.conditions.clear();
  for (kube::BatchJobStatus* each : {&stored, &wanted}) {
    each->ready = each->ready.value_or(0);
    each->terminating = each->terminating.value_or(0);
  }
  return wanted == stored;
}

// Returns true if the numbers of its pods are about to change by themselves: pods are made, become
// ready, or end, or all have ended and the end of their Job is still to be stored. A pod that has
// ended does not show that while others go on. The three numbers are those of the record.
bool is_in_motion(const JobRecord& record, std::int32_t active, std::int32_t ready,
                  std::int32_t terminating) {
  if (terminating > 0) return true;
  if (!record.status.stored().allocation) return active > 0;
  std::int32_t to_be_ready = 0;
  for (std::size_t i = 0; i < record.start.slots.size(); ++i) {
    if (record.start.slots[i].has_pod() && !record.start.slot_pods[i].is_finished) ++to_be_ready;
  }
  return ready == 0 || ready < to_be_ready;
}

}  // namespace

void AdoptedJobs::observe(const Changes<kube::BatchJob>& changes) {
  for (const auto& [key, object] : changes) {
    const auto known = uids_.find(key);
    // The informer shows the newest version per key, so a batch Job that was deleted and created
    // again is one change with another UID.
    if (known != uids_.end() && (object == nullptr || object->metadata.uid != known->second)) {
      // The kubegang Jobs for it go by garbage collection, or stay as they are.
      Adopted& gone = adopted_.at(known->second);
      gone.object = nullptr;
      templates_.forget(known->second);
      timers_.clear(known->second);
      drop_if_unknown(known->second);
      uids_.erase(known);
    }
    if (object == nullptr) continue;
    const std::string& uid = object->metadata.uid;
    uids_[key] = uid;
    Adopted& adopted = adopted_[uid];
    // New, or known only by its kubegang Jobs, which a new leader may hear of first.
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
  if (record.task || batch_owner(record.object->metadata) == nullptr) return;
  // Only what is stored counts, not what is wanted: the batch Job's status must never be ahead of a
  // commit point. If it said Complete and the operator crashed before our Job's end was stored, the
  // next leader could let the gang run again, while a finished batch Job can never change.
  OurJob job{.key = record.key,
             .attempt = attempt_of(record.object->metadata),
             .failures = failures_before(record.object->metadata),
             .status = record.status.stored(),
             .succeeded = done_indexes(record.object->spec, record.status.stored()),
             .version = record.status.version(),
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
  job.is_in_motion = is_in_motion(record, job.active, job.ready, job.terminating);
  put_job(*record.object, std::move(job));
}

void AdoptedJobs::observe_ended(const kube::Job& object) {
  if (batch_owner(object.metadata) == nullptr) return;
  put_job(object, {.key = kube::key_of(object.metadata),
                   .attempt = attempt_of(object.metadata),
                   .failures = failures_before(object.metadata),
                   .status = object.status,
                   .succeeded = done_indexes(object.spec, object.status),
                   .version = object.metadata.resource_version});
}

void AdoptedJobs::put_job(const kube::Job& object, OurJob job) {
  const std::string& owner = batch_owner(object.metadata)->uid;
  job.is_going = object.metadata.deletion_timestamp.has_value();
  job.taken_away = is_taken_away(object, job.status);
  owners_[object.metadata.uid] = owner;
  templates_.forget(owner);
  OurJob& known = adopted_[owner].jobs[object.metadata.uid];
  job.asked_at = known.asked_at;
  job.asked_version = std::move(known.asked_version);
  known = std::move(job);
  touched_.insert(owner);
}

void AdoptedJobs::forget_job(const std::string& uid) {
  const auto known = owners_.extract(uid);
  if (!known) return;
  const auto adopted = adopted_.find(known.mapped());
  if (adopted == adopted_.end()) return;
  // The failures of a forgotten Job stay counted: in the batch Job's status, and in the label of
  // the attempts after it.
  adopted->second.jobs.erase(uid);
  touched_.insert(adopted->first);
  drop_if_unknown(known.mapped());
}

void AdoptedJobs::put_orphan(const kube::Pod& pod) {
  const auto label = pod.metadata.labels.find(std::string{kube::kBatchControllerUid});
  if (label == pod.metadata.labels.end()) return;
  const kube::ObjectKey key = kube::key_of(pod.metadata);
  orphans_[key] = label->second;
  adopted_[label->second].orphans[key] = pod.metadata.deletion_timestamp.has_value();
  touched_.insert(label->second);
}

void AdoptedJobs::erase_orphan(const kube::ObjectKey& pod) {
  const auto known = orphans_.extract(pod);
  if (!known) return;
  const auto adopted = adopted_.find(known.mapped());
  if (adopted == adopted_.end()) return;
  adopted->second.orphans.erase(pod);
  touched_.insert(known.mapped());
  drop_if_unknown(known.mapped());
}

// Drops what is known about a batch Job that does not exist and has left nothing.
void AdoptedJobs::drop_if_unknown(const std::string& uid) {
  const auto found = adopted_.find(uid);
  if (found == adopted_.end()) return;
  const Adopted& adopted = found->second;
  if (adopted.object == nullptr && adopted.jobs.empty() && adopted.orphans.empty()) {
    adopted_.erase(found);
  }
}

// Any user may write labels, so pods of other namespaces do not count.
void AdoptedJobs::count_orphans(const Adopted& adopted, BatchView& view) {
  for (const auto& [pod, is_ending] : adopted.orphans) {
    if (pod.ns != adopted.object->metadata.ns) continue;
    view.phase = Phase::kStopping;
    ++(is_ending ? view.terminating : view.active);
  }
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
    const auto [entry, is_new] =
        adopted.jobs.try_emplace(job.metadata.uid, OurJob{.key = kube::key_of(job.metadata),
                                                          .attempt = attempt_of(job.metadata),
                                                          .failures = failures_before(job.metadata),
                                                          .version = job.metadata.resource_version,
                                                          .unseen_since = now});
    if (is_new && entry->second.attempt == 0) tell_run_otherwise(adopted);
    if (is_new || !has_failed(entry->second.status)) return;
    // An attempt that has failed has this name: its label was edited.
    adopted.creation.failed(now);
    adopted.refusal = "the kubegang Job " + job.metadata.name +
                      " has failed, and its labels say that it was another attempt";
    return;
  }
  const base::Error& error = outcome.result.error();
  // The first attempt takes the batch Job's own name, which users look for. If another Job has it,
  // a suffix is added.
  if (error.code == base::Code::kAlreadyExists && std::exchange(adopted.plain_name, false)) {
    return adopted.creation.lost_race();
  }
  adopted.creation.failed(now);
  // An unreachable API server is not a refusal: the creation is retried, and users see nothing of
  // it.
  const bool is_refusal = error.code == base::Code::kInvalidArgument ||
                          error.code == base::Code::kPermissionDenied ||
                          error.code == base::Code::kAlreadyExists;
  if (is_refusal) adopted.refusal = error.message;
  report_.warn("kubegang job not made", {{"of", outcome.owner_uid}, {"error", error.message}});
}

// Those whose turn comes are looked at like any that changed: what must be written may have changed
// by now, or gone.
void AdoptedJobs::take_from_lines(const Means& means) {
  const auto tokens = static_cast<std::size_t>(std::max(means.budget.tokens(), 0.0));
  for (std::size_t i = 0; i < tokens && !reasons_wait_.empty(); ++i) {
    touched_.insert(reasons_wait_.take_first());
  }
  for (std::size_t i = 0; i < means.room + tokens && !numbers_wait_.empty(); ++i) {
    touched_.insert(numbers_wait_.take_first());
  }
}

std::vector<Effect> AdoptedJobs::due(InformBudget& budget, std::size_t room, base::Instant now) {
  std::vector<Effect> effects;
  Means means{budget, room};
  for (std::string& uid : timers_.take_due(now)) touched_.insert(std::move(uid));
  // Batch Jobs that have waited longest for room come first. A Job may have become unwanted.
  while (means.room > 0 && !to_make_.empty()) {
    look_and_write(std::string{to_make_.first()}, means, now, effects);
    (void)to_make_.take_first();
  }
  take_from_lines(means);
  for (const std::string& uid : std::exchange(touched_, {})) {
    look_and_write(uid, means, now, effects);
  }
  return effects;
}

void AdoptedJobs::look_and_write(const std::string& uid, Means& means, base::Instant now,
                                 std::vector<Effect>& effects) {
  const auto found = adopted_.find(uid);
  if (found == adopted_.end() || found->second.object == nullptr) return;
  // 1. which kubegang Jobs are made or deleted, and what the status should say
  look(uid, found->second, means, now, effects);
  // 2. the difference to what is stored, now or when its turn comes
  write(uid, found->second, means, now, effects);
}

void AdoptedJobs::look(const std::string& uid, Adopted& adopted, Means& means, base::Instant now,
                       std::vector<Effect>& effects) {
  const kube::BatchJob& object = *adopted.object;
  forget_unseen(adopted, now);
  const bool has_ended = kube::is_finished(adopted.status.stored());
  if (!has_ended) adopted.ended_since = base::kNever;
  if (object.metadata.deletion_timestamp || has_ended) {
    // It says nothing new. The status wanted before is void: another leader may have written the
    // end, and the API server refuses every status that takes an end back.
    adopted.status.wanted() = adopted.status.stored();
    // The dependents of one that is being deleted are the garbage collector's.
    if (object.metadata.deletion_timestamp) return;
    if (adopted.ended_since == base::kNever) adopted.ended_since = now;
    // Jobs that wait go at once, because they would start what has ended.
    delete_unfinished(adopted, nullptr, adopted.ended_since + kEndsByItself, now, effects);
    return;
  }
  const BatchView view = view_of(adopted, means, now, effects);
  if (adopted.creation.due() > now && adopted.creation.due() != base::kNever) {
    timers_.set_no_later(uid, adopted.creation.due());
  }
  if (view.phase == Phase::kStopping) timers_.set_no_later(uid, now + kDeleteAgain);
  tell_refusal(adopted, view);
  adopted.is_passing = view.is_passing;
  adopted.status.wanted() = batch_status_after(object.spec, adopted.status.stored(), view, now);
}

// Forgets Jobs that were made and deleted before any watch has shown them.
void AdoptedJobs::forget_unseen(Adopted& adopted, base::Instant now) {
  for (auto at = adopted.jobs.begin(); at != adopted.jobs.end();) {
    const std::optional<base::Instant>& since = at->second.unseen_since;
    if (since && now >= *since + kUnseen) {
      owners_.erase(at->first);
      at = adopted.jobs.erase(at);
      continue;
    }
    if (since) timers_.set_no_later(adopted.object->metadata.uid, *since + kUnseen);
    ++at;
  }
}

// Asks for the deletion of the Job, of `uid`, unless that was asked for a moment ago. It is refused
// if the Job is not as it is known, and asked for again when it is.
void AdoptedJobs::delete_job(const std::string& uid, OurJob& job, base::Instant now,
                             std::vector<Effect>& effects) {
  if (job.deleted || job.is_going) return;
  if (now < job.asked_at + kDeleteAgain && job.version == job.asked_version) return;
  job.asked_at = now;
  job.asked_version = job.version;
  effects.emplace_back(DeleteJob{job.key, uid, job.version});
}

// Asks for the deletion of its unfinished kubegang Jobs but `present`, until they are gone.
// One that has nodes is left alone until `patience_ends`.
void AdoptedJobs::delete_unfinished(Adopted& adopted, const OurJob* present,
                                    base::Instant patience_ends, base::Instant now,
                                    std::vector<Effect>& effects) {
  const std::string& uid = adopted.object->metadata.uid;
  for (auto& [job_uid, job] : adopted.jobs) {
    if (&job == present || is_final(job.status) || job.deleted || job.is_going) continue;
    if (job.status.allocation && now < patience_ends) {
      timers_.set_no_later(uid, patience_ends);
      continue;
    }
    delete_job(job_uid, job, now, effects);
    timers_.set_no_later(uid, job.asked_at + kDeleteAgain);
  }
}

BatchView AdoptedJobs::view_of(Adopted& adopted, Means& means, base::Instant now,
                               std::vector<Effect>& effects) {
  const kube::BatchJobSpec& spec = adopted.object->spec;
  const FailedAttempts failed = failed_attempts(spec, adopted.status.stored(), adopted.jobs);
  BatchView view;
  const OurJob* present = nullptr;
  for (const auto& [uid, job] : adopted.jobs) {
    // Attempts before this one have failed, and those after it do not exist yet: at most one is
    // present, whatever its label says, which users can edit.
    const bool is_over = is_final(job.status) && has_failed(job.status);
    if (is_over || job.deleted || job.taken_away) continue;
    if (present == nullptr || job.attempt == failed.attempts) present = &job;
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
            .message = "Job has reached the specified backoff limit",
            .start = failed.start};
  } else if (spec.suspend) {
    view = view_of_suspended(adopted, now, effects);
  } else if (present == nullptr) {
    view = view_without_job(adopted, failed, means, now, effects);
  } else {
    // There are no others unless etcd was restored: an attempt that had failed is unfinished again,
    // and a leader that remembered more made the next one once more. Both would run the same pods.
    delete_unfinished(adopted, present, now, now, effects);
    view = live_view(present->status);
    view.active = present->active;
    view.ready = present->ready;
    view.terminating = present->terminating;
    view.is_passing = view.is_passing || present->is_in_motion;
  }
  view.failed = failed.counted;
  if (view.succeeded_indexes.empty()) {
    view.succeeded_indexes =
        base::format_number_list(succeeded_so_far(spec, adopted.status.stored(), adopted.jobs));
  }
  return view;
}

BatchView AdoptedJobs::view_of_suspended(Adopted& adopted, base::Instant now,
                                         std::vector<Effect>& effects) {
  BatchView view{.phase = Phase::kSuspended};
  // batch/v1: suspending a Job deletes its pods, and resuming it starts them again. So the Job
  // behind it is deleted, which is asked for again until it is gone.
  const auto succeeded = static_cast<std::int32_t>(
      succeeded_so_far(adopted.object->spec, adopted.status.stored(), adopted.jobs).size());
  const bool all_counted = adopted.status.stored().succeeded >= succeeded;
  for (auto& [uid, job] : adopted.jobs) {
    // The Job of a failed attempt stays: its pods keep their logs, and its label its number.
    if (is_final(job.status) && !job.deleted) continue;
    view.phase = Phase::kStopping;
    // Suspended=True must wait for these: clients take that condition as the promise that no pod
    // runs.
    view.active += job.active;
    view.terminating += job.terminating;
    // Successes are counted first: the next Job goes on from there.
    if (all_counted) delete_job(uid, job, now, effects);
  }
  count_orphans(adopted, view);
  return view;
}

// The present attempt has no Job yet.
BatchView AdoptedJobs::view_without_job(Adopted& adopted, const FailedAttempts& failed,
                                        Means& means, base::Instant now,
                                        std::vector<Effect>& effects) {
  // Pods of the one before it may be left after a suspension, under the same host names.
  for (const auto& [uid, job] : adopted.jobs) {
    if (job.deleted) {
      return {.phase = Phase::kStopping, .active = job.active, .terminating = job.terminating};
    }
    if (!job.taken_away) continue;
    // The Job's name is not free yet, and how long a finalizer keeps it is not known.
    return {.phase = Phase::kWaiting,
            .reason = "BeingDeleted",
            .message = "the kubegang Job " + job.key.name +
                       " is being deleted; the next one is made when it is gone"};
  }
  BatchView stopping;
  count_orphans(adopted, stopping);
  if (stopping.phase == Phase::kStopping) return stopping;
  Attempt attempt{
      .number = failed.attempts, .failures = failed.counted, .plain_name = adopted.plain_name};
  for (const auto& [uid, job] : adopted.jobs) {
    // The batch group's activeDeadlineSeconds is wall time since startTime; here only time in which
    // the gang ran counts, in all attempts together (docs/batch-jobs.md), so waiting in the queue
    // costs nothing.
    if (job.status.run_time) attempt.ran += job.status.run_time->elapsed;
    if (job.attempt == failed.attempts - 1 && job.status.end_time) {
      attempt.not_before = *job.status.end_time + back_off(failed.attempts);
    }
  }
  attempt.succeeded = succeeded_so_far(adopted.object->spec, adopted.status.stored(), adopted.jobs);
  if (has_followers(adopted.object->spec) &&
      static_cast<int>(attempt.succeeded.size()) >= completions_of(adopted.object->spec)) {
    return {.phase = Phase::kComplete};  // its Jobs are gone, and all that was left is its status
  }
  const auto deadline = deadline_of(adopted.object->spec);
  // The first attempt gets the whole deadline as its time limit and ends with Timeout. Only a later
  // attempt can find that nothing is left.
  if (deadline && failed.attempts > 0 && attempt.ran >= *deadline) {
    return {.phase = Phase::kFailed,
            .reason = "DeadlineExceeded",
            .message = "Job was active longer than specified deadline"};
  }
  // Translated again at each look: until the kubegang Job exists, an edit of the batch Job, such as
  // of its annotations, still counts.
  BatchVerdict verdict = translate_batch_job(*adopted.object, attempt);
  if (!verdict.problems.empty()) {
    return {
        .phase = Phase::kRefused, .reason = "NotSupported", .message = joined(verdict.problems)};
  }
  // A pod failed when those that successPolicy asks for had succeeded. Another attempt would wait
  // for nodes only to end when it has them.
  const auto& policy = verdict.job.spec.lifecycle.success_policy;
  if (policy && early_success(*policy, {}, {}, now, attempt.succeeded)) {
    return {.phase = Phase::kComplete, .start = failed.start};
  }
  // After a refusal the next try waits for the back-off; look() has set its timer.
  if (adopted.creation.may_begin(now) &&
      to_make_.may_go(adopted.object->metadata.uid, means.room)) {
    adopted.creation.begin();
    effects.push_back(creation_of(adopted, std::move(verdict.job)));
  }
  if (!adopted.refusal.empty()) {
    return {.phase = Phase::kRefused, .reason = "NotMade", .message = adopted.refusal};
  }
  return {.phase = Phase::kWaiting,
          .reason = "Queued",
          .message = "the gang is on its way into the queue",
          .is_passing = true};
}

Effect AdoptedJobs::creation_of(const Adopted& adopted, kube::Job job) {
  const kube::BatchJob& object = *adopted.object;
  CreateJob::TemplateOf of{kube::key_of(object.metadata), object.spec.pod_template};
  if (kube::RawJson whole = templates_.take(object.metadata.uid); !whole.empty()) {
    kube::BatchJob with_template = object;
    with_template.spec.pod_template = std::move(whole);
    of.whole = Shared{std::move(with_template)};
  }
  return CreateJob{.job = std::move(job), .template_of = std::move(of)};
}

// One event for each new sentence. Without this a refusal that stays would make an event at every
// look, and again for each new leader.
void AdoptedJobs::tell_refusal(Adopted& adopted, const BatchView& view) {
  const std::string message = view.phase == Phase::kRefused ? view.message : "";
  if (std::exchange(adopted.told_refusal, message) == message || message.empty()) return;
  const kube::Condition* told =
      kube::find_condition(adopted.status.stored().conditions, kube::kBatchAccepted);
  if (told != nullptr && told->message == message) return;  // by a leader before us
  report_.event(kube::reference_to(*adopted.object), true, "Refused", message);
}

// Reports it with the first attempt. The others are run in the same way.
void AdoptedJobs::tell_run_otherwise(const Adopted& adopted) const {
  const std::string message = adopted.object == nullptr ? "" : run_otherwise(*adopted.object);
  if (message.empty()) return;
  report_.event(kube::reference_to(*adopted.object), false, "RunOtherwise", message);
}

// Returns true if a difference that nothing waits for may be written now; else it is looked at
// again when its time has come, or its turn.
bool AdoptedJobs::may_inform(const std::string& uid, Adopted& adopted, Means& means,
                             base::Instant now) {
  StatusMirror<kube::BatchJob>& mirror = adopted.status;
  if (adopted.differs_since == base::kNever) adopted.differs_since = now;
  const bool only_why = says_only_why(mirror.stored(), mirror.wanted());
  // Pods that have succeeded stay so, whatever becomes of the others.
  const bool is_passing =
      adopted.is_passing && mirror.stored().succeeded == mirror.wanted().succeeded;
  const base::Duration gather = !is_passing              ? kGather
                                : means.budget.is_busy() ? kGatherPassingWhenBusy
                                                         : kGatherPassing;
  base::Instant at = adopted.differs_since + gather;
  if (only_why && mirror.informed_at() > base::Instant{}) {
    at = std::max(at, mirror.informed_at() + InformBudget::kObjectPeriod);
  }
  if (at > now) {
    timers_.set_no_later(uid, at);
    return false;
  }
  const bool are_numbers = !only_why && !is_passing;
  if (are_numbers && means.room > 0) {
    --means.room;
  } else if (means.budget.has_one()) {
    means.budget.spend_one();
  } else {
    (are_numbers ? numbers_wait_ : reasons_wait_).add(uid);
    return false;
  }
  mirror.mark(only_why ? WriteUrgency::kInforms : WriteUrgency::kUrgent);
  return true;
}

// Writes by four degrees, since each write of a batch Job costs the API server as much as one of a
// kubegang Job:
//
// 1. Changes that clients wait for go out at once (is_urgent): an end, a suspension, a count of
//    failures. Complete and its SuccessCriteriaMet are one write, as are Failed and its
//    FailureTarget: the API server demands both, not one after the other.
// 2. Numbers of pods that stay as they are, above all those of a gang that has started, wait for a
//    moment, and behind the writes for which pods wait. A later write is always more exact.
// 3. Numbers that are about to change wait longer, most of them until they have.
// 4. Mere reasons go out once a minute for each object. They share the budget with 3.
void AdoptedJobs::write(const std::string& uid, Adopted& adopted, Means& means, base::Instant now,
                        std::vector<Effect>& effects) {
  StatusMirror<kube::BatchJob>& mirror = adopted.status;
  if (mirror.wanted() == mirror.stored()) {
    adopted.differs_since = base::kNever;
    return;
  }
  if (mirror.is_in_flight()) return;  // its answer touches it
  if (!mirror.may_write(now)) return timers_.set_no_later(uid, mirror.due());
  if (is_urgent(adopted.object->spec, mirror.stored(), mirror.wanted())) {
    mirror.mark(WriteUrgency::kUrgent);
  } else if (!may_inform(uid, adopted, means, now)) {
    return;
  }
  adopted.differs_since = base::kNever;
  // The patch carries the version of `from`: if another writer was faster (batch/v1's own
  // controller does not touch managed Jobs), it conflicts, and the answer touches the batch Job for
  // the next look.
  effects.emplace_back(PatchStatus<kube::BatchJob>{.point = WritePoint::kAdoptedStatus,
                                                   .from = mirror.object_with(mirror.stored()),
                                                   .to = mirror.object_with(mirror.wanted())});
  mirror.begin(now);
}

base::Instant AdoptedJobs::next_due(base::Instant now) const {
  base::Instant due = touched_.empty() ? base::kNever : now;
  if (!reasons_wait_.empty() || !numbers_wait_.empty()) due = now;
  due = std::min(due, timers_.next().value_or(base::kNever));
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
