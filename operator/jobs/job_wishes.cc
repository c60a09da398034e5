// What users want of their jobs: submission, changes, holds, suspension, cancelling, deletion.
#include <algorithm>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"
#include "operator/translate/job_check.h"
#include "operator/translate/sentences.h"

namespace control {
void ControlLoop::observe(const Changes<kube::Job>& changes) {
  // New jobs get their numbers in the order in which they were made, as far as it is known.
  std::vector<std::shared_ptr<const kube::Job>> objects;
  for (const auto& [key, object] : changes) {
    const auto known = uid_of_.find(key);
    if (known != uid_of_.end() && (object == nullptr || object->metadata.uid != known->second)) {
      const std::string uid = known->second;
      uid_of_.erase(known);
      if (JobRecord* job = find_job(uid)) on_job_gone(*job);
    }
    if (object != nullptr) objects.push_back(object);
  }
  std::stable_sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) {
    if (a->metadata.creation_timestamp != b->metadata.creation_timestamp) {
      return a->metadata.creation_timestamp < b->metadata.creation_timestamp;
    }
    return is_newer_version(b->metadata.resource_version, a->metadata.resource_version);
  });
  for (const auto& object : objects) on_job(object);
}

void ControlLoop::on_job(const std::shared_ptr<const kube::Job>& object) {
  const std::string& uid = object->metadata.uid;
  JobRecord* known = find_job(uid);
  if (known == nullptr) return on_new_job(object);
  JobRecord& job = *known;
  if (object->metadata.generation >= job.object->metadata.generation) {
    job.judge_again =
        job.judge_again || object->metadata.generation != job.object->metadata.generation;
    job.object = object;
  }
  if (const auto facts = templates_.find(uid); facts != nullptr && facts != job.pod_template) {
    job.pod_template = facts;
    job.judge_again = true;
  }
  observe_stored(job, *object);
  touch(uid);
}

void ControlLoop::on_new_job(const std::shared_ptr<const kube::Job>& object) {
  const std::string& uid = object->metadata.uid;
  uid_of_[kube::key_of(object->metadata)] = uid;
  // After the restore, a number in the status of a new job was not given by us.
  const sched::JobId id{restored_ ? 0 : object->status.job_id.value_or(0)};
  ++arrivals_;
  if (object->status.state && kube::is_final(*object->status.state)) {
    return keep_finished(object, id);
  }
  JobRecord& job = make_record(object, arrivals_, id);
  unfinished_[uid] = &job;
  if (restored_) touch(uid);
}

// What is known of a job from its object alone.
JobRecord& ControlLoop::make_record(const std::shared_ptr<const kube::Job>& object,
                                    std::int64_t arrival, sched::JobId id) {
  const std::string& uid = object->metadata.uid;
  std::unique_ptr<JobRecord>& slot = jobs_[uid];
  slot = std::make_unique<JobRecord>();
  slot->arrival = arrival;
  slot->key = kube::key_of(object->metadata);
  slot->uid = uid;
  slot->id = id;
  slot->object = object;
  slot->basis = object->spec;
  slot->pod_template = templates_.find(uid);
  if (slot->pod_template == nullptr) slot->pod_template = std::make_shared<const TemplateFacts>();
  slot->status = StatusMirror<kube::Job>{*object};
  if (id.value() != 0) uid_by_id_[id] = uid;
  return *slot;
}

void ControlLoop::on_job_gone(JobRecord& job) {
  job.deleted = true;
  job.status.saw_gone();
  log("job deleted", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  touch(job.uid);
}

// Whether the job is legal, and what of it changed: REQUIRES that it is not final.
void ControlLoop::judge(JobRecord& job) {
  if (!std::exchange(job.judge_again, false)) return;
  if (job.id.value() == 0) {
    const auto id = numbers_.next(job.uid);
    if (!id) {
      job.judge_again = true;
      return write_due_numbers();
    }
    job.id = *id;
    uid_by_id_[job.id] = job.uid;
    job.wanted().job_id = job.id.value();
  }
  if (!job.wanted().submit_time) {
    job.wanted().submit_time = job.object->metadata.creation_timestamp.value_or(now_);
  }
  const auto facts = nodes_.selector_facts();
  JobVerdict verdict =
      translate_job(*job.object, *job.pod_template, job.id, *job.wanted().submit_time,
                    {policy_.configuration(), nodes_.capacity(), facts});
  if (job.submitted) {
    auto changes = check_change(job.basis, job.object->spec, job.is_allocated());
    if (job.is_allocated() && !job.pod_template->problems.empty()) {
      changes.push_back(job.pod_template->problems.front());
    }
    if (!changes.empty()) return refuse_change(job, changes);
  }
  if (!job.is_allocated()) show_partitions(job);
  if (!verdict.request) {
    // A job whose partition was deleted stays in the queue as PartitionInactive (api.md).
    const bool waits_for_partition = job.submitted && verdict.partition_missing;
    if (!job.is_allocated() && !waits_for_partition) refuse(job, verdict.problems);
    return;
  }
  sched::JobRequest request = std::move(*verdict.request);
  job.basis = job.object->spec;
  if (!job.submitted) return submit(job, std::move(request));
  show_accepted(job);
  if (job.request == request) return;
  const bool held = job.request.hold;
  job.request = std::move(request);
  tell(sched::Update{job.request});
  if (job.request.hold != held) {
    if (job.request.hold) {
      tell(sched::Hold{.job = job.id});
    } else {
      tell(sched::Release{job.id});
    }
  }
}

void ControlLoop::refuse(JobRecord& job, const std::vector<std::string>& problems) {
  if (job.submitted) {
    job.submitted = false;
    tell(sched::Forget{job.id});
  }
  const std::string message = joined(problems);
  kube::JobStatus& wanted = job.wanted();
  wanted.observed_generation = job.object->metadata.generation;
  const bool changed =
      job.set_condition(kube::kAccepted, kube::ConditionStatus::kFalse, "Invalid", message, now_);
  if (!changed && wanted.message == message) return;
  wanted.state = kube::JobState::kPending;
  wanted.reason = "NotAccepted";
  wanted.message = message;
  mark(job, WriteUrgency::kUrgent);
  log("job refused", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                         " message=\"" + message + "\"");
  event(job, true, "Refused", message.substr(0, 1000));
}

// The job goes on as it was.
void ControlLoop::refuse_change(JobRecord& job, const std::vector<std::string>& problems) {
  const std::string message = joined(problems) + "; the job goes on as it was";
  job.wanted().observed_generation = job.object->metadata.generation;
  if (!job.set_condition(kube::kAccepted, kube::ConditionStatus::kFalse, "ChangeRefused", message,
                         now_)) {
    return;
  }
  mark(job, WriteUrgency::kUrgent);
  log("change refused", "job=" + kube::to_string(job.key) + " message=\"" + message + "\"");
  event(job, true, "ChangeRefused", message.substr(0, 1000));
}

// squeue's PARTITION of a job that waits. The first write of its status carries it.
void ControlLoop::show_partitions(JobRecord& job) {
  std::string names = partition_names(job.object->spec, policy_.configuration());
  if (names == job.wanted().partition) return;
  job.wanted().partition = std::move(names);
  mark(job, WriteUrgency::kInforms);
  counts_dirty_ = true;
}

void ControlLoop::show_accepted(JobRecord& job) {
  const bool warns = !job.pod_warning.empty();
  job.wanted().observed_generation = job.object->metadata.generation;
  if (!job.set_condition(
          kube::kAccepted, kube::ConditionStatus::kTrue, warns ? "AcceptedWithWarning" : "Accepted",
          warns ? "the job is in the queue; the API server would refuse its pods now: " +
                      job.pod_warning
                : "the job is in the queue",
          now_)) {
    return;
  }
  mark(job, WriteUrgency::kInforms);
}

void ControlLoop::submit(JobRecord& job, sched::JobRequest request) {
  job.submitted = true;
  job.request = std::move(request);
  job.told_suspend = job.request.suspend;
  kube::JobStatus& wanted = job.wanted();
  wanted.state = kube::JobState::kPending;
  wanted.reason.clear();
  wanted.message.clear();
  if (!wanted.observed) {
    wanted.observed = kube::JobObserved{job.object->spec.control.requeue_request.value_or(0),
                                        job.object->spec.control.release_request.value_or(0)};
  }
  show_accepted(job);
  mark(job, WriteUrgency::kUrgent);
  counts_dirty_ = true;
  trials_.add(job.uid);
  log("job submitted", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  tell(sched::Submit{job.request});
}

// Everything in the spec that is a command rather than a property.
void ControlLoop::tell_wishes(JobRecord& job) {
  if (!job.submitted) return;
  const kube::JobSpec& spec = job.object->spec;
  if (spec.control.cancel.value_or(false) && !job.told_cancel) {
    job.told_cancel = true;
    tell(sched::Cancel{job.id});
  }
  const bool suspend = spec.control.suspend.value_or(false);
  if (suspend != job.told_suspend) {
    job.told_suspend = suspend;
    if (suspend) {
      tell(sched::UserSuspend{job.id});
    } else {
      tell(sched::UserResume{job.id});
    }
  }
  if (!job.wanted().observed) job.wanted().observed.emplace();
  kube::JobObserved& observed = *job.wanted().observed;
  if (const auto wish = spec.control.requeue_request.value_or(0); wish > observed.requeue_request) {
    observed.requeue_request = wish;
    mark(job, WriteUrgency::kUrgent);
    tell(sched::Requeue{job.id});
  }
  if (const auto wish = spec.control.release_request.value_or(0); wish > observed.release_request) {
    observed.release_request = wish;
    job.wanted().held.reset();
    mark(job, WriteUrgency::kUrgent);
    tell(sched::Release{job.id});
  }
}

void ControlLoop::judge_waiting_jobs() {
  for (const auto& [uid, job] : unfinished_) {
    if (job->is_final() || job->is_allocated() || job->deleted) continue;
    job->judge_again = true;
    touch(uid);
  }
}

void ControlLoop::try_due_pods() {
  while (inform_.has_one() && !trials_.empty()) {
    const JobRecord* job = find_job(trials_.take_first());
    const bool waits = job != nullptr && job->submitted && !job->deleted && !job->is_final() &&
                       !job->is_allocated();
    if (!waits) continue;
    inform_.spend_one();
    write(trial_of(*job, policy_.configuration()));
  }
}

void ControlLoop::answered(PodTried&& outcome) {
  JobRecord* job = find_job(outcome.uid);
  if (job == nullptr || job->is_final() || job->is_allocated()) return;
  std::string warning = refusal_of(outcome);
  if (warning == job->pod_warning) return;
  job->pod_warning = std::move(warning);
  show_accepted(*job);
  if (!job->pod_warning.empty()) {
    event(*job, true, "PodsWouldBeRefused", job->pod_warning.substr(0, 1000));
  }
}

// Of a deleted job whose pods are gone.
void ControlLoop::forget(JobRecord& job) {
  leave_scheduler(job);
  for (const std::string& node : job.start.nodes) nodes_.leave(node, job.uid);
  templates_.forget(job.uid);
  uid_by_id_.erase(job.id);
  timers_.erase({job.timer, job.uid});
  status_jobs_.erase(job.uid);
  counts_dirty_ = true;
  jobs_.erase(job.uid);  // `job` is gone now
}

}  // namespace control
