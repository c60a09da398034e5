#include "operator/managed/attempt_book.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"

namespace control {
namespace {

// A workload with a back-off of 6 min would have to fail for eleven years.
constexpr int kAttemptMax = 1'000'000;
// Between attempts, as the batch group's controller has it.
constexpr base::Duration kBackOffFirst = std::chrono::seconds{10};
constexpr base::Duration kBackOffMax = std::chrono::minutes{6};
// An answered creation that no watch has shown for this time: it was deleted at once.
constexpr base::Duration kAttemptUnseen = std::chrono::seconds{30};

// Reads a label, which users can edit. `absent` stands for what no attempt can have: what is not a
// number, is negative, or is above kAttemptMax.
int number_in(const kube::ObjectMeta& metadata, std::string_view name, int absent) {
  const auto label = metadata.labels.find(std::string{name});
  if (label == metadata.labels.end()) return absent;
  int number = 0;
  const std::string& text = label->second;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool is_possible =
      parsed.ec == std::errc{} && parsed.ptr == end && number >= 0 && number <= kAttemptMax;
  return is_possible ? number : absent;
}

// Reads from the labels of a kubegang Job its attempt, and how many before it count as failures. In
// a Job of a version without that label each attempt before it counts.
OurJob numbered(const kube::Job& object) {
  const int attempt = number_in(object.metadata, kube::kLabelAttempt, 0);
  return {.key = kube::key_of(object.metadata),
          .attempt = attempt,
          .failures = number_in(object.metadata, kube::kLabelFailures, attempt),
          .version = object.metadata.resource_version};
}

// Returns true if the gang was canceled only because its Job was deleted, while something keeps the
// Job: another finalizer, or a deletion in the foreground. That is not a result: a Job that is
// deleted at once leaves none either.
bool is_taken_away(const kube::Job& object, const kube::JobStatus& status) {
  return object.metadata.deletion_timestamp && status.state == kube::JobState::kCancelled &&
         !object.spec.control.cancel.value_or(false);
}

// Returns true if the numbers of its pods are about to change by themselves: pods are made, become
// ready, or end, or all have ended and the end of their Job is still to be stored. A pod that has
// ended does not show that while others go on.
bool is_in_motion(const JobRecord& record, const OurJob& job) {
  if (job.terminating > 0) return true;
  if (!record.status.stored().allocation) return job.active > 0;
  std::int32_t to_be_ready = 0;
  for (std::size_t i = 0; i < record.start->slots.size(); ++i) {
    if (record.start->slots[i].has_pod() && !record.start->slot_pods[i].is_finished) ++to_be_ready;
  }
  return job.ready == 0 || job.ready < to_be_ready;
}

}  // namespace

bool is_final(const kube::JobStatus& status) {
  return status.state && kube::is_final(*status.state);
}

bool has_failed(const kube::JobStatus& status) {
  return status.state == kube::JobState::kFailed || status.state == kube::JobState::kOutOfMemory ||
         status.state == kube::JobState::kNodeFail;
}

// The shift is bounded because the number of failures is not: kBackOffMax is reached at the
// seventh.
base::Duration back_off(int failures) {
  const base::Duration wait = kBackOffFirst * (std::int64_t{1} << std::min(failures - 1, 10));
  return std::min(wait, kBackOffMax);
}

// Only what is stored counts, not what is wanted: the workload's status must never be ahead of a
// commit point. If it said Complete and the operator crashed before our Job's end was stored, the
// next leader could let the gang run again, while a finished batch Job can never change.
void AttemptBook::observe_job(const JobRecord& record) {
  if (record.task || kind_.owner_of(record.object->metadata) == nullptr) return;
  OurJob job = numbered(*record.object);
  job.status = record.status.stored();
  job.succeeded = done_indexes(record.object->spec, job.status);
  job.version = record.status.version();
  job.deleted = record.deleted;
  for (const auto& [name, pod] : *record.pods) {
    // The batch group's own counting: `active` are pods that have not finished, `terminating` those
    // of them that are being deleted, `ready` by their condition.
    if (is_finished(*pod) || record.stale_pods->contains(name)) continue;
    if (pod->metadata.deletion_timestamp) {
      ++job.terminating;
      continue;
    }
    ++job.active;
    if (kube::is_true(pod->status.conditions, "Ready")) ++job.ready;
  }
  job.is_in_motion = is_in_motion(record, job);
  put_job(*record.object, std::move(job));
}

void AttemptBook::observe_ended(const kube::Job& object) {
  if (kind_.owner_of(object.metadata) == nullptr) return;
  OurJob job = numbered(object);
  job.status = object.status;
  job.succeeded = done_indexes(object.spec, object.status);
  put_job(object, std::move(job));
}

void AttemptBook::put_job(const kube::Job& object, OurJob job) {
  const std::string& owner = kind_.owner_of(object.metadata)->uid;
  job.is_going = object.metadata.deletion_timestamp.has_value();
  job.taken_away = is_taken_away(object, job.status);
  owners_[object.metadata.uid] = owner;
  OurJob& known = workloads_[owner].jobs[object.metadata.uid];
  job.asked_at = known.asked_at;
  job.asked_version = std::move(known.asked_version);
  known = std::move(job);
  touched_.insert(owner);
}

// The failures of a forgotten Job stay counted: in the workload's status, and in the label of the
// attempts after it.
void AttemptBook::forget_job(const std::string& uid) {
  const auto known = owners_.extract(uid);
  Workload* const workload = known ? find(known.mapped()) : nullptr;
  if (workload == nullptr) return;
  workload->jobs.erase(uid);
  touched_.insert(known.mapped());
  drop_if_unknown(known.mapped());
}

void AttemptBook::put_orphan(const kube::Pod& pod) {
  const auto label = pod.metadata.labels.find(std::string{kind_.uid_label});
  if (label == pod.metadata.labels.end()) return;
  const kube::ObjectKey key = kube::key_of(pod.metadata);
  orphans_[key] = label->second;
  workloads_[label->second].orphans[key] = pod.metadata.deletion_timestamp.has_value();
  touched_.insert(label->second);
}

void AttemptBook::erase_orphan(const kube::ObjectKey& pod) {
  const auto known = orphans_.extract(pod);
  Workload* const workload = known ? find(known.mapped()) : nullptr;
  if (workload == nullptr) return;
  workload->orphans.erase(pod);
  touched_.insert(known.mapped());
  drop_if_unknown(known.mapped());
}

void AttemptBook::look_again(const std::string& uid) {
  if (workloads_.contains(uid)) touched_.insert(uid);
}

AttemptBook::Workload& AttemptBook::put_workload(const std::string& uid) {
  touched_.insert(uid);
  Workload& workload = workloads_[uid];
  workload.exists = true;
  return workload;
}

void AttemptBook::erase_workload(const std::string& uid) {
  workloads_.at(uid).exists = false;
  timers_.clear(uid);
  drop_if_unknown(uid);
}

AttemptBook::Workload* AttemptBook::find(const std::string& uid) {
  const auto found = workloads_.find(uid);
  return found == workloads_.end() ? nullptr : &found->second;
}

void AttemptBook::drop_if_unknown(const std::string& uid) {
  const Workload& workload = workloads_.at(uid);
  if (!workload.exists && workload.jobs.empty() && workload.orphans.empty()) workloads_.erase(uid);
}

// Attempts before this one have failed, and those after it do not exist yet: at most one is
// present, whatever its label says, which users can edit.
const OurJob* AttemptBook::present(const Workload& workload, int attempt) {
  const OurJob* present = nullptr;
  for (const auto& [uid, job] : workload.jobs) {
    const bool is_over = is_final(job.status) && has_failed(job.status);
    if (is_over || job.deleted || job.taken_away) continue;
    if (present == nullptr || job.attempt == attempt) present = &job;
  }
  return present;
}

Attempt AttemptBook::next_attempt(const Workload& workload, int number, int failures) {
  Attempt attempt{.number = number, .failures = failures, .plain_name = workload.plain_name};
  for (const auto& [uid, job] : workload.jobs) {
    if (job.status.run_time) attempt.ran += job.status.run_time->elapsed;
    if (job.attempt == number - 1 && job.status.end_time) {
      attempt.not_before = *job.status.end_time + back_off(number);
    }
  }
  return attempt;
}

bool AttemptBook::may_make(const std::string& uid, Workload& workload, std::size_t& room,
                           base::Instant now) {
  if (!workload.creation.may_begin(now) || !to_make_.may_go(uid, room)) return false;
  workload.creation.begin();
  return true;
}

std::optional<int> AttemptBook::note_answer(const JobCreated& outcome, base::Instant now) {
  Workload* const workload = find(outcome.owner_uid);
  if (workload == nullptr) return std::nullopt;
  touched_.insert(outcome.owner_uid);
  if (outcome.result.ok()) {
    workload->creation.succeeded();
    workload->refusal.clear();
    const kube::Job& job = *outcome.result;
    owners_[job.metadata.uid] = outcome.owner_uid;
    // Noted at once: the watch may lag, and a second attempt must not be made in the meantime.
    const auto [entry, is_new] = workload->jobs.try_emplace(job.metadata.uid, numbered(job));
    if (is_new) {
      entry->second.unseen_since = now;
      return entry->second.attempt;
    }
    if (!has_failed(entry->second.status)) return std::nullopt;
    // An attempt that has failed has this name: its label was edited.
    workload->creation.failed(now);
    workload->refusal = "the kubegang Job " + job.metadata.name +
                        " has failed, and its labels say that it was another attempt";
    return std::nullopt;
  }
  const base::Error& error = outcome.result.error();
  // The first attempt takes the workload's own name, which users look for. If another Job has it, a
  // suffix is added.
  if (error.code == base::Code::kAlreadyExists && std::exchange(workload->plain_name, false)) {
    workload->creation.lost_race();
    return std::nullopt;
  }
  workload->creation.failed(now);
  // An unreachable API server is not a refusal: the creation is retried, and users see nothing of
  // it.
  if (is_refusal_of_job(error.code)) workload->refusal = error.message;
  report_.warn("kubegang job not made", {{"of", outcome.owner_uid}, {"error", error.message}});
  return std::nullopt;
}

void AttemptBook::forget_unseen(const std::string& uid, Workload& workload, base::Instant now) {
  for (auto at = workload.jobs.begin(); at != workload.jobs.end();) {
    const std::optional<base::Instant>& since = at->second.unseen_since;
    if (since && now >= *since + kAttemptUnseen) {
      owners_.erase(at->first);
      at = workload.jobs.erase(at);
      continue;
    }
    if (since) timers_.set_no_later(uid, *since + kAttemptUnseen);
    ++at;
  }
}

void AttemptBook::delete_job(const std::string& uid, OurJob& job, base::Instant now,
                             std::vector<Effect>& effects) {
  if (job.deleted || job.is_going) return;
  if (now < job.asked_at + kDeleteAgain && job.version == job.asked_version) return;
  job.asked_at = now;
  job.asked_version = job.version;
  effects.emplace_back(DeleteJob{job.key, uid, job.version});
}

void AttemptBook::delete_unfinished(const std::string& uid, Workload& workload,
                                    const OurJob* present, base::Instant patience_ends,
                                    base::Instant now, std::vector<Effect>& effects) {
  for (auto& [job_uid, job] : workload.jobs) {
    if (&job == present || is_final(job.status) || job.deleted || job.is_going) continue;
    if (job.status.allocation && now < patience_ends) {
      timers_.set_no_later(uid, patience_ends);
      continue;
    }
    delete_job(job_uid, job, now, effects);
    timers_.set_no_later(uid, job.asked_at + kDeleteAgain);
  }
}

}  // namespace control
