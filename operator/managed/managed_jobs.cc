#include "operator/managed/managed_jobs.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "base/number_list.h"
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

}  // namespace

ManagedJobs::ManagedJobs(const Report& report, WholeTemplates& templates)
    : AttemptBook{report, {.owner_of = batch_owner, .uid_label = kube::kBatchControllerUid}},
      templates_{templates} {}

void ManagedJobs::observe(const Changes<kube::BatchJob>& changes) {
  for (const auto& [key, object] : changes) {
    const auto known = uids_.find(key);
    // The informer shows the newest version per key, so a batch Job that was deleted and created
    // again is one change with another UID.
    if (known != uids_.end() && (object == nullptr || object->metadata.uid != known->second)) {
      managed_.erase(known->second);
      templates_.forget(known->second);
      erase_workload(known->second);
      uids_.erase(known);
    }
    if (object == nullptr) continue;
    const std::string& uid = object->metadata.uid;
    uids_[key] = uid;
    Managed& managed = managed_[uid];
    if (managed.object == nullptr) {
      managed.status = StatusMirror<kube::BatchJob>{*object};
    } else {
      (void)managed.status.saw(*object);
    }
    managed.object = object;
    managed.workload = &put_workload(uid);
  }
}

// Any user may write labels, so pods of other namespaces do not count.
void ManagedJobs::count_orphans(const Managed& managed, BatchView& view) {
  for (const auto& [pod, is_ending] : managed.workload->orphans) {
    if (pod.ns != managed.object->metadata.ns) continue;
    view.phase = Phase::kStopping;
    ++(is_ending ? view.terminating : view.active);
  }
}

StatusMirror<kube::BatchJob>* ManagedJobs::find_status(const std::string& uid) {
  const auto found = managed_.find(uid);
  return found == managed_.end() ? nullptr : &found->second.status;
}

// The first attempt says what is run in another way than its author wrote. So are all others.
void ManagedJobs::answered(const JobCreated& outcome, base::Instant now) {
  const auto made = note_answer(outcome, now);
  const auto found = managed_.find(outcome.owner_uid);
  if (made != 0 || found == managed_.end()) return;
  const std::string message = run_otherwise(*found->second.object);
  if (message.empty()) return;
  report_.event(kube::reference_to(*found->second.object), false, "RunOtherwise", message);
}

// Those whose turn comes are looked at like any that changed: what must be written may have changed
// by now, or gone.
void ManagedJobs::take_from_lines(const Means& means) {
  const auto tokens = static_cast<std::size_t>(std::max(means.budget.tokens(), 0.0));
  for (std::size_t i = 0; i < tokens && !reasons_wait_.empty(); ++i) {
    touched_.insert(reasons_wait_.take_first());
  }
  for (std::size_t i = 0; i < means.room + tokens && !numbers_wait_.empty(); ++i) {
    touched_.insert(numbers_wait_.take_first());
  }
}

std::vector<Effect> ManagedJobs::due(InformBudget& budget, std::size_t room, base::Instant now) {
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

void ManagedJobs::look_and_write(const std::string& uid, Means& means, base::Instant now,
                                 std::vector<Effect>& effects) {
  const auto found = managed_.find(uid);
  if (found == managed_.end()) return;
  // 1. which kubegang Jobs are made or deleted, and what the status should say
  look(uid, found->second, means, now, effects);
  // 2. the difference to what is stored, now or when its turn comes
  write(uid, found->second, means, now, effects);
}

void ManagedJobs::look(const std::string& uid, Managed& managed, Means& means, base::Instant now,
                       std::vector<Effect>& effects) {
  const kube::BatchJob& object = *managed.object;
  if (!managed.workload->jobs.empty()) templates_.forget(uid);
  forget_unseen(uid, *managed.workload, now);
  const bool has_ended = kube::is_finished(managed.status.stored());
  if (!has_ended) managed.ended_since = base::kNever;
  if (object.metadata.deletion_timestamp || has_ended) {
    // It says nothing new. The status wanted before is void: another leader may have written the
    // end, and the API server refuses every status that takes an end back.
    managed.status.wanted_unmarked() = managed.status.stored();
    // The dependents of one that is being deleted are the garbage collector's.
    if (object.metadata.deletion_timestamp) return;
    if (managed.ended_since == base::kNever) managed.ended_since = now;
    // Jobs that wait go at once, because they would start what has ended.
    delete_unfinished(uid, *managed.workload, nullptr, managed.ended_since + kEndsByItself, now,
                      effects);
    return;
  }
  const BatchView view = view_of(managed, means, now, effects);
  const base::Instant creation = managed.workload->creation.due();
  if (creation > now && creation != base::kNever) timers_.set_no_later(uid, creation);
  if (view.phase == Phase::kStopping) timers_.set_no_later(uid, now + kDeleteAgain);
  tell_refusal(managed, view);
  managed.is_passing = view.is_passing;
  managed.status.wanted_unmarked() =
      batch_status_after(object.spec, managed.status.stored(), view, now);
}

BatchView ManagedJobs::view_of(Managed& managed, Means& means, base::Instant now,
                               std::vector<Effect>& effects) {
  const kube::BatchJobSpec& spec = managed.object->spec;
  Workload& workload = *managed.workload;
  const FailedAttempts failed = failed_attempts(spec, managed.status.stored(), workload.jobs);
  BatchView view;
  const OurJob* const present = AttemptBook::present(workload, failed.attempts);
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
    view = view_of_suspended(managed, now, effects);
  } else if (present == nullptr) {
    view = view_without_job(managed, failed, means, now, effects);
  } else {
    // There are no others unless etcd was restored: an attempt that had failed is unfinished again,
    // and a leader that remembered more made the next one once more. Both would run the same pods.
    delete_unfinished(managed.object->metadata.uid, workload, present, now, now, effects);
    view = live_view(present->status);
    view.active = present->active;
    view.ready = present->ready;
    view.terminating = present->terminating;
    view.is_passing = view.is_passing || present->is_in_motion;
  }
  view.failed = failed.counted;
  if (view.succeeded_indexes.empty()) {
    view.succeeded_indexes =
        base::format_number_list(succeeded_so_far(spec, managed.status.stored(), workload.jobs));
  }
  return view;
}

BatchView ManagedJobs::view_of_suspended(Managed& managed, base::Instant now,
                                         std::vector<Effect>& effects) {
  BatchView view{.phase = Phase::kSuspended};
  // batch/v1: suspending a Job deletes its pods, and resuming it starts them again. So the Job
  // behind it is deleted, which is asked for again until it is gone.
  const auto succeeded = static_cast<std::int32_t>(
      succeeded_so_far(managed.object->spec, managed.status.stored(), managed.workload->jobs)
          .size());
  const bool all_counted = managed.status.stored().succeeded >= succeeded;
  for (auto& [uid, job] : managed.workload->jobs) {
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
  count_orphans(managed, view);
  return view;
}

// The present attempt has no Job yet.
BatchView ManagedJobs::view_without_job(Managed& managed, const FailedAttempts& failed,
                                        Means& means, base::Instant now,
                                        std::vector<Effect>& effects) {
  Workload& workload = *managed.workload;
  // Pods of the one before it may be left after a suspension, under the same host names.
  for (const auto& [uid, job] : workload.jobs) {
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
  count_orphans(managed, stopping);
  if (stopping.phase == Phase::kStopping) return stopping;
  // The batch group's activeDeadlineSeconds is wall time since startTime; here only time in which
  // the gang ran counts, in all attempts together (docs/batch-jobs.md), so waiting in the queue
  // costs nothing.
  Attempt attempt = next_attempt(workload, failed.attempts, failed.counted);
  attempt.succeeded =
      succeeded_so_far(managed.object->spec, managed.status.stored(), workload.jobs);
  if (has_followers(managed.object->spec) &&
      static_cast<int>(attempt.succeeded.size()) >= completions_of(managed.object->spec)) {
    return {.phase = Phase::kComplete};  // its Jobs are gone, and all that was left is its status
  }
  const auto deadline = deadline_of(managed.object->spec);
  // The first attempt gets the whole deadline as its time limit and ends with Timeout. Only a later
  // attempt can find that nothing is left.
  if (deadline && failed.attempts > 0 && attempt.ran >= *deadline) {
    return {.phase = Phase::kFailed,
            .reason = "DeadlineExceeded",
            .message = "Job was active longer than specified deadline"};
  }
  // Translated again at each look: until the kubegang Job exists, an edit of the batch Job, such as
  // of its annotations, still counts.
  BatchVerdict verdict = translate_batch_job(*managed.object, attempt);
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
  if (may_make(managed.object->metadata.uid, workload, means.room, now)) {
    effects.push_back(creation_of(managed, std::move(verdict.job)));
  }
  if (!workload.refusal.empty()) {
    return {.phase = Phase::kRefused, .reason = "NotMade", .message = workload.refusal};
  }
  return {.phase = Phase::kWaiting,
          .reason = "Queued",
          .message = "the gang is on its way into the queue",
          .is_passing = true};
}

Effect ManagedJobs::creation_of(const Managed& managed, kube::Job job) {
  const kube::BatchJob& object = *managed.object;
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
void ManagedJobs::tell_refusal(Managed& managed, const BatchView& view) {
  const std::string message = view.phase == Phase::kRefused ? view.message : "";
  if (std::exchange(managed.told_refusal, message) == message || message.empty()) return;
  const kube::Condition* told =
      kube::find_condition(managed.status.stored().conditions, kube::kBatchAccepted);
  if (told != nullptr && told->message == message) return;  // by a leader before us
  report_.event(kube::reference_to(*managed.object), true, "Refused", message);
}

// Returns true if a difference that nothing waits for may be written now; else it is looked at
// again when its time has come, or its turn.
bool ManagedJobs::may_inform(const std::string& uid, Managed& managed, Means& means,
                             base::Instant now) {
  StatusMirror<kube::BatchJob>& mirror = managed.status;
  if (managed.differs_since == base::kNever) managed.differs_since = now;
  const bool only_why = says_only_why(mirror.stored(), mirror.wanted());
  // Pods that have succeeded stay so, whatever becomes of the others.
  const bool is_passing =
      managed.is_passing && mirror.stored().succeeded == mirror.wanted().succeeded;
  const base::Duration gather = !is_passing              ? kGather
                                : means.budget.is_busy() ? kGatherPassingWhenBusy
                                                         : kGatherPassing;
  base::Instant at = managed.differs_since + gather;
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
void ManagedJobs::write(const std::string& uid, Managed& managed, Means& means, base::Instant now,
                        std::vector<Effect>& effects) {
  StatusMirror<kube::BatchJob>& mirror = managed.status;
  if (mirror.wanted() == mirror.stored()) {
    managed.differs_since = base::kNever;
    return;
  }
  if (mirror.is_in_flight()) return;  // its answer touches it
  if (!mirror.may_write(now)) return timers_.set_no_later(uid, mirror.due());
  if (is_urgent(managed.object->spec, mirror.stored(), mirror.wanted())) {
    mirror.mark(WriteUrgency::kUrgent);
  } else if (!may_inform(uid, managed, means, now)) {
    return;
  }
  managed.differs_since = base::kNever;
  // The patch carries the version of `from`: if another writer was faster (batch/v1's own
  // controller does not touch managed Jobs), it conflicts, and the answer touches the batch Job for
  // the next look.
  effects.emplace_back(PatchStatus<kube::BatchJob>{.point = WritePoint::kManagedStatus,
                                                   .from = mirror.object_with(mirror.stored()),
                                                   .to = mirror.object_with(mirror.wanted())});
  mirror.begin(now);
}

base::Instant ManagedJobs::next_due(base::Instant now) const {
  base::Instant due = touched_.empty() ? base::kNever : now;
  if (!reasons_wait_.empty() || !numbers_wait_.empty()) due = now;
  due = std::min(due, timers_.next().value_or(base::kNever));
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
