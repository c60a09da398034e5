// Pods: what they say about their job, and making and ending them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/pod_builder.h"
#include "operator/loop/control_loop.h"
#include "operator/translate/node_translation.h"
#include "operator/translate/units.h"

namespace control {
namespace {

constexpr base::Duration kAvoidNode = std::chrono::seconds{60};
constexpr base::Duration kPodDeleteRetry = std::chrono::milliseconds{500};
// So long after its start a job waits for a service account that is not there yet.
constexpr base::Duration kAccountPatience = std::chrono::seconds{15};
constexpr base::Duration kApiBackoffFirst = std::chrono::minutes{1};
constexpr base::Duration kApiBackoffMax = std::chrono::minutes{30};

// The UID of the Job of ours that controls the pod; "" for a foreign pod.
std::string job_uid_of(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  if (owner == nullptr || owner->kind != kube::Job::kResource.kind ||
      !owner->api_version.starts_with(std::string{kube::kGroup} + "/")) {
    return "";
  }
  return owner->uid;
}

bool is_ready_job(const JobRecord& job) {
  return kube::is_true(job.wanted().conditions, kube::kReady);
}

// A namespace that was made a moment ago has no service account; its controller makes it soon.
// That is no refusal with a back-off of minutes.
// SOURCE: the sentence of kube-apiserver's ServiceAccount admission plugin.
bool lacks_account_still(const JobRecord& job, const base::Error& error, base::Instant now) {
  if (error.code != base::Code::kPermissionDenied ||
      error.message.find("error looking up service account") == std::string::npos) {
    return false;
  }
  // Ready=False since the start.
  const kube::Condition* ready = kube::find_condition(job.wanted().conditions, kube::kReady);
  return ready != nullptr && ready->last_transition_time &&
         now < *ready->last_transition_time + kAccountPatience;
}

}  // namespace

void ControlLoop::observe(const Changes<kube::Pod>& changes) {
  for (const auto& [key, pod] : changes) index_pod(key, pod);
}

void ControlLoop::index_pod(const kube::ObjectKey& key,
                            const std::shared_ptr<const kube::Pod>& pod) {
  // Of a job that has ended nothing follows from its pods: finished_ is not looked into.
  const auto job_of = [this](const std::string& uid) {
    const auto found = jobs_.find(uid);
    return found == jobs_.end() ? nullptr : found->second.get();
  };
  const auto before = pods_.find(key);
  if (before != pods_.end()) {
    nodes_.erase_pod(before->second.node, key);
    orphans_.remove(key);
    if (JobRecord* job = job_of(before->second.job_uid)) {
      // A pod that was made again under its name has another UID: the old one is gone.
      const auto known = job->pods.find(key.name);
      if (known != job->pods.end() &&
          (pod == nullptr || known->second->metadata.uid != pod->metadata.uid)) {
        job->deleting.erase(known->second->metadata.uid);
      }
      job->erase_pod(key.name);
      touch(job->uid);
    }
    pods_.erase(before);
  }
  if (pod == nullptr || !pod->spec.node_name) return;
  const std::string& node_name = *pod->spec.node_name;
  const std::string uid = job_uid_of(*pod);
  pods_[key] = {node_name, uid, uid.empty() ? nullptr : pod};
  if (JobRecord* job = job_of(uid); job != nullptr && job->key.ns == key.ns) {
    job->put_pod(key.name, pod);
    touch(uid);
    return;
  }
  if (const auto job = finished_.find(uid);
      job != finished_.end() && job->second.object->metadata.ns == key.ns) {
    return;
  }
  if (is_finished(*pod)) return;
  if (uid.empty()) {
    nodes_.put_foreign(node_name, key, memory_request(*pod));
  } else {
    nodes_.put_orphan(node_name, key);
    orphans_.add(key);
  }
}

void ControlLoop::reconcile(JobRecord& job) {
  if (job.deleted) {
    if (!job.is_allocated() || !job.submitted) {
      for (const auto& [name, pod] : job.pods) delete_pod(job, *pod, std::nullopt);
      if (!has_pods_left(job) && job.start.creating.empty()) forget(job);
      return;
    }
    if (!std::exchange(job.told_cancel, true)) tell(sched::Cancel{job.id});
  } else {
    if (job.is_final()) return reconcile_finished(job);
    judge(job);
    tell_wishes(job);
  }
  if (!job.submitted || job.is_final()) return;
  delete_stale_pods(job);
  // Neither are pods made nor ended before the commit point is stored.
  if (!job.is_allocated() || !gate_.may_delete_pods(job.uid)) return;
  if (job.wanted().ending) {
    reconcile_ending(job);
  } else {
    reconcile_running(job);
  }
}

// Pods of earlier starts: whatever made them, they are not wanted any more.
void ControlLoop::delete_stale_pods(JobRecord& job) {
  for (const std::string& name : job.stale_pods) {
    const kube::Pod& pod = *job.pods.at(name);
    // Between a requeue and the next start they may stay: their logs are still of use.
    if (job.is_allocated() || !is_finished(pod)) delete_pod(job, pod, std::nullopt);
  }
}

bool ControlLoop::has_pods_left(const JobRecord& job) const {
  return std::any_of(job.pods.begin(), job.pods.end(), [&](const auto& entry) {
    return !is_finished(*entry.second) &&
           !nodes_.is_lost(entry.second->spec.node_name.value_or(""));
  });
}

void ControlLoop::reconcile_ending(JobRecord& job) {
  const kube::JobEnding ending = *job.wanted().ending;
  for (const auto& [name, pod] : job.pods) delete_pod(job, *pod, ending.grace_end);
  if (has_pods_left(job) || !job.start.creating.empty()) return;
  if (job.start.undo) return finish_undo(job);
  tell(sched::JobGone{.job = job.id,
                      .verdict = sched::JobState::kFailed,  // of no meaning: the ending is decided
                      .exit_code = ending.exit_code.value_or(0)});
}

void ControlLoop::reconcile_running(JobRecord& job) {
  for (const std::string& node : job.start.nodes) {
    if (!nodes_.is_lost(node)) continue;
    return end_by_itself(job, {.state = sched::JobState::kNodeFail,
                               .lost_member = true,
                               .message = "node " + node + " is gone"});
  }
  if (!job.pods.empty()) ensure_service(job);
  GangView view{.slots = job.start.slots,
                .pods = job.start.slot_pods,
                .failing_since = &job.start.failing_since,
                .settle = policy_.parameters().settle,
                .ready = is_ready_job(job)};
  const kube::Condition* ready_condition =
      kube::find_condition(job.wanted().conditions, kube::kReady);
  if (!view.ready && job.object->spec.lifecycle.start_timeout && ready_condition != nullptr &&
      ready_condition->last_transition_time) {
    view.start_deadline =
        *ready_condition->last_transition_time + *job.object->spec.lifecycle.start_timeout;
  }
  const GangObservation seen = observe_gang(view, now_);
  std::map<std::string, base::Instant> failing;
  for (const std::string& name : seen.failing) {
    const auto since = job.start.failing_since.find(name);
    failing[name] = since == job.start.failing_since.end() ? now_ : since->second;
  }
  job.start.failing_since = std::move(failing);
  if (seen.look_again) set_timer(job, *seen.look_again);
  if (seen.never_frozen && !job.start.never_frozen) leave_rotation(job, *seen.never_frozen);

  if (seen.launch) {
    return undo_start(
        job, {.avoid_nodes = seen.launch->refused_by_kubelet
                                 ? std::vector<std::string>{seen.launch->node}
                                 : std::vector<std::string>{},
              .avoid_for = seen.launch->refused_by_kubelet ? kAvoidNode : base::Duration{0},
              .hold = !seen.launch->refused_by_kubelet,
              .message = seen.launch->message});
  }
  if (!view.ready && (seen.all_finished || seen.failure) && seen.first_started) {
    // It ends without having been ready: its times come from its containers.
    job.wanted().start_time = seen.first_started;
    const base::Instant end = seen.last_finished.value_or(now_);
    job.wanted().run_time =
        kube::RunTime{std::max(end - *seen.first_started, base::Duration{0}), end};
  }
  if (seen.failure) return end_by_itself(job, *seen.failure);
  if (seen.all_succeeded) {
    tell(sched::JobGone{.job = job.id, .verdict = sched::JobState::kCompleted, .exit_code = 0});
    return;
  }
  if (view.ready) {
    if (seen.missing.empty()) return;
    const PodSlot& slot = job.start.slots[static_cast<std::size_t>(seen.missing.front())];
    return end_by_itself(job,
                         {.state = sched::JobState::kNodeFail,
                          .lost_member = true,
                          .message = "pod " + slot.name + " on node " + slot.node + " is gone"});
  }
  if (!seen.missing.empty()) return launch(job, seen.missing);
  if (!seen.settled_at) return;
  if (*seen.settled_at > now_) return set_timer(job, *seen.settled_at);
  ready(job);
}

// For as long as this start lasts: what a webhook has put into its pods does not go with being
// frozen (architecture.md 4). The scheduler goes on giving it its turns; it runs in the others'
// too.
void ControlLoop::leave_rotation(JobRecord& job, const std::string& why) {
  job.start.never_frozen = true;
  for (const std::string& node : job.start.nodes) timetables_.leave_out(node, job.uid);
  const std::string message = why +
                              ", which its template has not: a mutating webhook of the cluster "
                              "added it. The job's pods are never frozen; who shares their nodes "
                              "runs at the same time";
  if (!job.set_condition(kube::kNeverFrozen, kube::ConditionStatus::kTrue, "ChangedByWebhook",
                         message, now_)) {
    return;  // a new leader finds what its predecessor has said
  }
  mark(job, WriteUrgency::kUrgent);
  warn("never frozen",
       "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " why=\"" + why + "\"");
  event(job, true, "NeverFrozen", message.substr(0, 1000));
}

void ControlLoop::ready(JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  job.set_condition(kube::kReady, kube::ConditionStatus::kTrue, "Settled", "all its pods run",
                    now_);
  wanted.start_time = now_;
  job.api_refusals = 0;
  mark(job, WriteUrgency::kCommit);
  log("ready", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  tell(sched::JobReady{job.id});
  show_times(job);
}

// The job's own end while other pods of it may still be there: they are torn down.
void ControlLoop::end_by_itself(JobRecord& job, const GangFailure& failure) {
  const bool may_requeue =
      job.object->spec.lifecycle.requeue.value_or(policy_.configuration().cluster.requeue_default);
  sched::JobState state = failure.state;
  const bool requeue = failure.lost_member && may_requeue;
  if (requeue) state = sched::JobState::kNodeFail;  // the scheduler requeues it then
  kube::JobEnding ending;
  ending.verdict = requeue                                  ? kube::EndingVerdict::kRequeue
                   : state == sched::JobState::kNodeFail    ? kube::EndingVerdict::kNodeFail
                   : state == sched::JobState::kOutOfMemory ? kube::EndingVerdict::kOutOfMemory
                                                            : kube::EndingVerdict::kFailed;
  ending.reason = failure.lost_member ? "LostMember" : "NonZeroExitCode";
  if (state == sched::JobState::kOutOfMemory) ending.reason = "OutOfMemory";
  ending.exit_code = failure.exit_code;
  ending.since = now_;
  job.wanted().ending = ending;
  job.wanted().message = job.start.end_message = failure.message;
  show_completing(job);
  mark(job, WriteUrgency::kCommit);
  log("job ends", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                      " verdict=" + std::string{kube::to_string(ending.verdict)} + " why=\"" +
                      failure.message + "\"");
  event(job, true, "Ending", failure.message);
  tell(sched::JobEnding{.job = job.id, .verdict = state, .exit_code = failure.exit_code});
}

// Nothing of the start is to stay: its pods go first, then the scheduler hears of it.
void ControlLoop::undo_start(JobRecord& job, StartUndo undo) {
  const bool may_requeue =
      job.object->spec.lifecycle.requeue.value_or(policy_.configuration().cluster.requeue_default);
  if (undo.hold && !may_requeue) {
    return end_by_itself(job, {.exit_code = 1, .message = undo.message});
  }
  kube::JobEnding ending;
  ending.verdict = kube::EndingVerdict::kRequeue;
  ending.reason = std::string{undo.hold ? kube::kLaunchFailed : kube::kStartUndone};
  ending.since = now_;
  job.wanted().ending = ending;
  job.wanted().message = undo.message;
  job.start.undo = std::move(undo);
  show_completing(job);
  mark(job, WriteUrgency::kCommit);
  warn("start undone", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " why=\"" +
                           job.start.undo->message + "\"");
  event(job, true, "StartUndone", job.start.undo->message.substr(0, 1000));
}

void ControlLoop::finish_undo(JobRecord& job) {
  const StartUndo undo = *std::exchange(job.start.undo, std::nullopt);
  sched::StartRefused refused{.job = job.id,
                              .avoid_nodes = undo.avoid_nodes,
                              .avoid_for = undo.avoid_for,
                              .hold = undo.hold,
                              .message = undo.message};
  if (undo.api_refused) {
    refused.avoid_for = std::min(
        kApiBackoffFirst * (std::int64_t{1} << std::min(job.api_refusals, 10)), kApiBackoffMax);
    ++job.api_refusals;
    job.start_refusal = undo.message;
  }
  tell(refused);
}

void ControlLoop::launch(JobRecord& job, const std::vector<int>& missing) {
  const bool all_under_way = std::includes(job.start.creating.begin(), job.start.creating.end(),
                                           missing.begin(), missing.end());
  if (job.deleted || job.start.launching || all_under_way) return;
  if (!gate_.may_create_pods(job.uid, job.start.nodes)) return;
  if (!job.start.pod_tries.may_begin(now_)) return set_timer(job, job.start.pod_tries.due());
  if (!job.start.launch_template.empty()) {
    kube::Job source = *job.object;
    source.spec.pod_template = std::exchange(job.start.launch_template, {});
    return create_pods(job, source);
  }
  job.start.launching = true;
  // The informers keep no templates: it is read when it is needed.
  write(ReadTemplate{job.key, job.uid});
}

void ControlLoop::answered(TemplateRead&& outcome) {
  JobRecord* job = find_job(outcome.uid);
  if (job == nullptr) return;
  job->start.launching = false;
  touch(job->uid);
  if (!outcome.result.ok()) {
    job->start.pod_tries.failed(now_);
    return;
  }
  if (outcome.result->metadata.uid == job->uid && job->is_allocated() && !job->wanted().ending) {
    job->start.launch_template = outcome.result->spec.pod_template;  // launch() goes on
  }
}

// The answer to the start's commit has the template too: nobody has to ask for it again.
void ControlLoop::keep_template(const std::string& uid, const kube::Job& answer) {
  JobRecord* job = find_job(uid);
  if (job == nullptr || !job->is_allocated() || job->wanted().ending) return;
  if (!job->pods.empty() || !job->start.creating.empty()) return;
  job->start.launch_template = answer.spec.pod_template;
}

void ControlLoop::create_pods(JobRecord& job, const kube::Job& object) {
  kube::Job source = object;
  source.status = job.wanted();
  const PodOptions options{.kill_wait = policy_.configuration().cluster.kill_wait};
  ensure_service(job);
  const Shared<GangLayout> gang{gang_layout(job.start.slots)};
  const Shared<kube::Job> shared{std::move(source)};
  for (const PodSlot& slot : job.start.slots) {
    if (job.pods.contains(slot.name) || !job.start.creating.insert(slot.index).second) continue;
    ++counters_.pod_creates;
    write(CreatePod{shared, gang, options, slot});
  }
}

// The names of a gang's pods, made with its first pod; a new leader makes sure of it once, since
// its predecessor may have got no further. Tried until it is there: without it the gang has no
// names.
void ControlLoop::ensure_service(JobRecord& job) {
  GangStart& start = job.start;
  if (start.has_service || !needs_service(*job.object, start.slots.size())) return;
  if (start.service_tries.is_under_way()) return;
  if (!start.service_tries.may_begin(now_)) return set_timer(job, start.service_tries.due());
  start.service_tries.begin();
  write(CreateService{build_service(*job.object), job.uid});
}

void ControlLoop::answered(ServiceCreated&& outcome) {
  JobRecord* job = find_job(outcome.job_uid);
  if (job == nullptr) return;
  GangStart& start = job->start;
  if (outcome.status.ok()) {
    start.service_tries.succeeded();
    start.has_service = true;
    return;
  }
  ++counters_.write_failures;
  start.service_tries.failed(now_);
  touch(job->uid);
  const std::string& why = outcome.status.error().message;
  if (std::exchange(start.service_problem, why) == why) return;  // it has been said
  warn("service not made", "job=" + kube::to_string(job->key) + " error=\"" + why + "\"");
  event(*job, true, "ServiceNotMade", why);
}

JobRecord* ControlLoop::creation_ended(const std::string& uid, std::int64_t starts, int index) {
  JobRecord* job = find_job(uid);
  if (job == nullptr || job->wanted().starts.value_or(0) != starts) return nullptr;
  job->start.creating.erase(index);
  touch(uid);
  return job;
}

void ControlLoop::answered(PodCreated&& outcome) {
  const std::string& uid = outcome.job_uid;
  const PodSlot& slot = outcome.slot;
  base::Result<kube::Pod>& result = outcome.result;
  JobRecord* job = creation_ended(uid, outcome.starts, slot.index);
  if (job == nullptr) return;
  if (!outcome.was_built) {  // the template's memory limits do not fit this node's part
    if (job->wanted().ending) return;
    return undo_start(*job, {.hold = true, .message = result.error().message});
  }
  if (result.ok() && job_uid_of(*result) == uid) {
    job->start.pod_tries.succeeded();
    if (!job->pods.contains(slot.name)) {
      const kube::ObjectKey key = kube::key_of(result->metadata);
      index_pod(key, std::make_shared<const kube::Pod>(std::move(*result)));
    }
    return;
  }
  if (job->wanted().ending) return;
  if (result.ok()) {
    return undo_start(
        *job, {.hold = true,
               .message = "a pod named " + slot.name + " exists and is not this job's; delete it"});
  }
  ++counters_.write_failures;
  switch (result.error().code) {
    case base::Code::kInvalidArgument:
    case base::Code::kPermissionDenied:
    case base::Code::kTooLarge:
      if (lacks_account_still(*job, result.error(), now_)) {
        job->start.pod_tries.failed(now_);
        return;
      }
      return undo_start(*job, {.api_refused = true, .message = result.error().message});
    case base::Code::kUnauthenticated:
    case base::Code::kNotFound:
    case base::Code::kAlreadyExists:
    case base::Code::kConflict:
    case base::Code::kGone:
    case base::Code::kUnavailable:
    case base::Code::kTimeout:
    case base::Code::kCancelled:
    case base::Code::kInternal:
      job->start.pod_tries.failed(now_);
  }
}

void ControlLoop::delete_pod(JobRecord& job, const kube::Pod& pod,
                             std::optional<base::Instant> kill_at) {
  const std::string& uid = pod.metadata.uid;
  const bool lost = nodes_.is_lost(pod.spec.node_name.value_or(""));
  if (is_finished(pod) && job.wanted().ending) return;  // its log stays until the next start
  if (pod.metadata.deletion_timestamp && !lost) return;
  if (!job.deleting.insert(uid).second) return;
  ++counters_.pod_deletes;
  std::optional<std::chrono::seconds> grace_period;
  if (lost) {
    grace_period = std::chrono::seconds{0};  // no kubelet will ever confirm it
  } else if (kill_at && !is_finished(pod)) {
    // Zero would remove the record of a process that may still run.
    grace_period =
        std::chrono::seconds{std::max<std::int64_t>(whole_seconds_up(*kill_at - now_), 1)};
  }
  write(DeletePod{kube::key_of(pod.metadata), uid, job.uid, grace_period});
}

void ControlLoop::answered(PodDeleted&& outcome) {
  JobRecord* job = find_job(outcome.job_uid);
  if (job == nullptr || outcome.status.ok()) return;
  const auto code = outcome.status.error().code;
  if (code == base::Code::kNotFound || code == base::Code::kConflict) return;
  ++counters_.write_failures;
  job->deleting.erase(outcome.uid);
  set_timer(*job, now_ + kPodDeleteRetry);
}

void ControlLoop::write_due_orphans() {
  for (DeleteOrphan& effect : orphans_.due(now_)) write(std::move(effect));
}

}  // namespace control
