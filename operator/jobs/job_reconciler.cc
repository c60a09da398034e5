// Pods: what they say about their job, and making and ending them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/pod_builder.h"
#include "operator/loop/control_loop.h"
#include "operator/translate/units.h"

namespace control {
namespace {

constexpr base::Duration kAvoidNode = std::chrono::seconds{60};
constexpr base::Duration kOrphanRetry = std::chrono::seconds{5};
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

// Asks once more whether the pod's job is really gone.
void delete_if_orphan(const kube::Client& client, const kube::ObjectKey& key) {
  const auto pod = client.get<kube::Pod>(key);
  if (!pod.ok() || pod->metadata.deletion_timestamp) return;
  const kube::OwnerReference* owner = kube::controller_of(pod->metadata);
  if (owner == nullptr) return;
  const auto job = client.get<kube::Job>({key.ns, owner->name});
  if (job.ok() ? job->metadata.uid == owner->uid : job.error().code != base::Code::kNotFound) {
    return;
  }
  (void)client.remove<kube::Pod>(key, {.uid = pod->metadata.uid});
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

void ControlLoop::apply_pod_changes(const Inbox::Batch& batch) {
  for (const auto& [key, pod] : batch.of<kube::Pod>()) index_pod(key, pod);
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
    NodeRecord& node = nodes_[before->second.node];
    if (node.foreign.erase(key) + node.orphans.erase(key) > 0) node.is_told = false;
    orphans_.erase(key);
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
  NodeRecord& node = nodes_[node_name];
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
  node.is_told = false;
  if (uid.empty()) {
    if (!is_finished(*pod)) node.foreign[key] = memory_request(*pod);
  } else if (!is_finished(*pod)) {
    node.orphans.insert(key);
    orphans_.try_emplace(key, base::Instant{});
  }
}

void ControlLoop::reconcile(JobRecord& job) {
  if (job.deleted) {
    if (!job.is_allocated() || !job.submitted) {
      for (const auto& [name, pod] : job.pods) delete_pod(job, *pod, std::nullopt);
      if (!has_pods_left(job) && job.creating.empty()) forget(job);
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
  if (!job.is_allocated() || job.status.is_uncommitted()) return;
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
    return !is_finished(*entry.second) && !is_lost(entry.second->spec.node_name.value_or(""));
  });
}

void ControlLoop::reconcile_ending(JobRecord& job) {
  const kube::JobEnding ending = *job.wanted().ending;
  for (const auto& [name, pod] : job.pods) delete_pod(job, *pod, ending.grace_end);
  if (has_pods_left(job) || !job.creating.empty()) return;
  if (job.undo) return finish_undo(job);
  tell(sched::JobGone{.job = job.id,
                      .verdict = sched::JobState::kFailed,  // of no meaning: the ending is decided
                      .exit_code = ending.exit_code.value_or(0)});
}

void ControlLoop::reconcile_running(JobRecord& job) {
  for (const std::string& node : job.nodes) {
    if (!is_lost(node)) continue;
    return end_by_itself(job, {.state = sched::JobState::kNodeFail,
                               .lost_member = true,
                               .message = "node " + node + " is gone"});
  }
  GangView view{.slots = job.slots,
                .pods = job.slot_pods,
                .failing_since = &job.failing_since,
                .settle = parameters_.settle,
                .ready = is_ready_job(job)};
  const kube::Condition* ready_condition =
      kube::find_condition(job.wanted().conditions, kube::kReady);
  if (!view.ready && job.object->spec.start_timeout && ready_condition != nullptr &&
      ready_condition->last_transition_time) {
    view.start_deadline = *ready_condition->last_transition_time + *job.object->spec.start_timeout;
  }
  const GangObservation seen = observe_gang(view, now_);
  std::map<std::string, base::Instant> failing;
  for (const std::string& name : seen.failing) {
    const auto since = job.failing_since.find(name);
    failing[name] = since == job.failing_since.end() ? now_ : since->second;
  }
  job.failing_since = std::move(failing);
  if (seen.look_again) set_timer(job, *seen.look_again);
  if (seen.never_frozen && !job.never_frozen) leave_rotation(job, *seen.never_frozen);

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
    const PodSlot& slot = job.slots[static_cast<std::size_t>(seen.missing.front())];
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
  job.never_frozen = true;
  for (const std::string& name : job.nodes) {
    NodeRecord& node = nodes_[name];
    if (!node.wanted) continue;
    node.wanted = without_job(*node.wanted, job.uid);
    node.dirty = !node.exists || !same_plan(*node.wanted, node.stored);
    if (node.dirty) dirty_nodes_.insert(name);
  }
  const std::string message = why +
                              ", which its template has not: a mutating webhook of the cluster "
                              "added it. The job's pods are never frozen; who shares their nodes "
                              "runs at the same time";
  if (!kube::set_condition(job.wanted().conditions,
                           {.type = std::string{kube::kNeverFrozen},
                            .status = kube::ConditionStatus::kTrue,
                            .last_transition_time = now_,
                            .reason = "ChangedByWebhook",
                            .message = message},
                           now_)) {
    return;  // a new leader finds what its predecessor has said
  }
  job.status.mark(WriteUrgency::kUrgent);
  status_jobs_.insert(job.uid);
  warn("never frozen",
       "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " why=\"" + why + "\"");
  event(job, true, "NeverFrozen", message.substr(0, 1000));
}

void ControlLoop::ready(JobRecord& job) {
  kube::JobStatus& wanted = job.wanted();
  kube::set_condition(wanted.conditions,
                      {.type = std::string{kube::kReady},
                       .status = kube::ConditionStatus::kTrue,
                       .last_transition_time = now_,
                       .reason = "Settled",
                       .message = "all its pods run"},
                      now_);
  wanted.start_time = now_;
  job.api_refusals = 0;
  job.status.mark(WriteUrgency::kCommit);
  status_jobs_.insert(job.uid);
  log("ready", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id));
  tell(sched::JobReady{job.id});
  show_times(job);
}

// The job's own end while other pods of it may still be there: they are torn down.
void ControlLoop::end_by_itself(JobRecord& job, const GangFailure& failure) {
  const bool may_requeue =
      job.object->spec.requeue.value_or(configuration_.cluster.requeue_default);
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
  job.wanted().message = job.end_message = failure.message;
  show_completing(job);
  job.status.mark(WriteUrgency::kCommit);
  status_jobs_.insert(job.uid);
  touch(job.uid);
  log("job ends", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) +
                      " verdict=" + std::string{kube::to_string(ending.verdict)} + " why=\"" +
                      failure.message + "\"");
  event(job, true, "Ending", failure.message);
  tell(sched::JobEnding{.job = job.id, .verdict = state, .exit_code = failure.exit_code});
}

// Nothing of the start is to stay: its pods go first, then the scheduler hears of it.
void ControlLoop::undo_start(JobRecord& job, StartUndo undo) {
  const bool may_requeue =
      job.object->spec.requeue.value_or(configuration_.cluster.requeue_default);
  if (undo.hold && !may_requeue) {
    return end_by_itself(job, {.exit_code = 1, .message = undo.message});
  }
  kube::JobEnding ending;
  ending.verdict = kube::EndingVerdict::kRequeue;
  ending.reason = std::string{undo.hold ? kube::kLaunchFailed : kube::kStartUndone};
  ending.since = now_;
  job.wanted().ending = ending;
  job.wanted().message = undo.message;
  job.undo = std::move(undo);
  show_completing(job);
  job.status.mark(WriteUrgency::kCommit);
  status_jobs_.insert(job.uid);
  touch(job.uid);
  warn("start undone", "job=" + kube::to_string(job.key) + " id=" + to_string(job.id) + " why=\"" +
                           job.undo->message + "\"");
  event(job, true, "StartUndone", job.undo->message.substr(0, 1000));
}

void ControlLoop::finish_undo(JobRecord& job) {
  const StartUndo undo = *std::exchange(job.undo, std::nullopt);
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
  const bool all_under_way =
      std::includes(job.creating.begin(), job.creating.end(), missing.begin(), missing.end());
  if (job.deleted || job.launching || all_under_way || !timetables_are_written(job)) return;
  if (job.pods_retry_at > now_) return set_timer(job, job.pods_retry_at);
  if (!job.launch_template.empty()) {
    kube::Job source = *job.object;
    source.spec.pod_template = std::exchange(job.launch_template, {});
    return create_pods(job, source);
  }
  job.launching = true;
  // The informers keep no templates: it is read when it is needed.
  writer_.submit(
      {.point = "template-read", .run = [this, client = client_, key = job.key, uid = job.uid] {
         auto object = std::make_shared<base::Result<kube::Job>>(client.get<kube::Job>(key));
         return [this, uid, object] {
           JobRecord* known = find_job(uid);
           if (known == nullptr) return;
           known->launching = false;
           touch(uid);
           if (!object->ok()) {
             known->pods_retry_at = now_ + retry_delay(++known->pods_failures);
             return;
           }
           if ((*object)->metadata.uid != uid || known->deleted || !known->is_allocated() ||
               known->wanted().ending || known->status.is_uncommitted()) {
             return;
           }
           create_pods(*known, **object);
         };
       }});
}

// The answer to the start's commit has the template too: nobody has to ask for it again.
void ControlLoop::keep_template(const std::string& uid, const kube::Job& answer) {
  JobRecord* job = find_job(uid);
  if (job == nullptr || !job->is_allocated() || job->wanted().ending) return;
  if (!job->pods.empty() || !job->creating.empty()) return;
  job->launch_template = answer.spec.pod_template;
}

void ControlLoop::create_pods(JobRecord& job, const kube::Job& object) {
  kube::Job source = object;
  source.status = job.wanted();
  const PodOptions options{.kill_wait = configuration_.cluster.kill_wait};
  if (needs_service(source, job.slots.size()) && !job.service_made) create_service(job, source);
  const std::int64_t starts = job.wanted().starts.value_or(0);
  const auto gang = std::make_shared<const GangLayout>(gang_layout(job.slots));
  const auto shared = std::make_shared<const kube::Job>(std::move(source));
  for (const PodSlot& slot : job.slots) {
    if (job.pods.contains(slot.name) || !job.creating.insert(slot.index).second) continue;
    ++counters_.pod_creates;
    // Built when its turn comes: the pods of thousands that wait for theirs would fill the memory.
    writer_.submit({.point = "pod-create",
                    .run = [this, client = client_, shared, gang, options, slot,
                            starts]() -> std::function<void()> {
                      const std::string& uid = shared->metadata.uid;
                      const auto pod = build_pod(*shared, slot, *gang, options);
                      if (!pod.ok()) {
                        return [this, uid, starts, index = slot.index, error = pod.error()] {
                          on_pod_not_built(uid, starts, index, error);
                        };
                      }
                      const std::string& ns = shared->metadata.ns;
                      auto result = std::make_shared<base::Result<kube::Pod>>(
                          client.create_json<kube::Pod>(ns, *pod));
                      if (!result->ok() && result->error().code == base::Code::kAlreadyExists) {
                        *result = client.get<kube::Pod>({ns, slot.name});
                      }
                      return [this, uid, starts, slot, result] {
                        on_pod_created(uid, starts, slot, std::move(*result));
                      };
                    }});
  }
}

void ControlLoop::create_service(JobRecord& job, const kube::Job& object) {
  job.service_made = true;
  writer_.submit({.point = "service-create",
                  .run = [this, client = client_, service = build_service(object), uid = job.uid] {
                    auto result = client.create(service);
                    if (!result.ok() && result.error().code == base::Code::kAlreadyExists) {
                      result = client.get<kube::Service>(kube::key_of(service.metadata));
                      if (result.ok()) {
                        const auto* owner = kube::controller_of(result->metadata);
                        if (owner == nullptr || owner->uid != uid) {
                          result = base::Error{base::Code::kAlreadyExists,
                                               "service " + service.metadata.name +
                                                   " exists and is not the job's; rename the job "
                                                   "or set spec.network to None"};
                        }
                      }
                    }
                    return [this, uid, status = result.status()] {
                      JobRecord* known = find_job(uid);
                      if (known == nullptr || status.ok()) return;
                      ++counters_.write_failures;
                      warn("service not made", "job=" + kube::to_string(known->key) + " error=\"" +
                                                   status.error().message + "\"");
                      event(*known, true, "ServiceNotMade", status.error().message);
                    };
                  }});
}

JobRecord* ControlLoop::creation_ended(const std::string& uid, std::int64_t starts, int index) {
  JobRecord* job = find_job(uid);
  if (job == nullptr || job->wanted().starts.value_or(0) != starts) return nullptr;
  job->creating.erase(index);
  touch(uid);
  return job;
}

// The template's memory limits do not fit this node's part.
void ControlLoop::on_pod_not_built(const std::string& uid, std::int64_t starts, int index,
                                   const base::Error& error) {
  JobRecord* job = creation_ended(uid, starts, index);
  if (job == nullptr || job->wanted().ending) return;
  undo_start(*job, {.hold = true, .message = error.message});
}

void ControlLoop::on_pod_created(const std::string& uid, std::int64_t starts, const PodSlot& slot,
                                 base::Result<kube::Pod> result) {
  JobRecord* job = creation_ended(uid, starts, slot.index);
  if (job == nullptr) return;
  if (result.ok() && job_uid_of(*result) == uid) {
    job->pods_failures = 0;
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
        job->pods_retry_at = now_ + retry_delay(++job->pods_failures);
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
      job->pods_retry_at = now_ + retry_delay(++job->pods_failures);
  }
}

void ControlLoop::delete_pod(JobRecord& job, const kube::Pod& pod,
                             std::optional<base::Instant> kill_at) {
  const std::string& uid = pod.metadata.uid;
  const bool lost = is_lost(pod.spec.node_name.value_or(""));
  if (is_finished(pod) && job.wanted().ending) return;  // its log stays until the next start
  if (pod.metadata.deletion_timestamp && !lost) return;
  if (!job.deleting.insert(uid).second) return;
  ++counters_.pod_deletes;
  kube::DeleteOptions options{.uid = uid};
  if (lost) {
    options.grace_period = std::chrono::seconds{0};  // no kubelet will ever confirm it
  } else if (kill_at && !is_finished(pod)) {
    // Zero would remove the record of a process that may still run.
    options.grace_period =
        std::chrono::seconds{std::max<std::int64_t>(whole_seconds_up(*kill_at - now_), 1)};
  }
  writer_.submit({.point = "pod-delete",
                  .run = [this, client = client_, key = kube::key_of(pod.metadata), options,
                          job_uid = job.uid, uid] {
                    const auto status = client.remove<kube::Pod>(key, options);
                    return [this, key, job_uid, uid, status] {
                      JobRecord* known = find_job(job_uid);
                      if (known == nullptr || status.ok()) return;
                      const auto code = status.error().code;
                      if (code == base::Code::kNotFound || code == base::Code::kConflict) return;
                      ++counters_.write_failures;
                      known->deleting.erase(uid);
                      set_timer(*known, now_ + std::chrono::milliseconds{500});
                    };
                  }});
}

// Pods of jobs that do not exist any more, found by a new leader: garbage collection ends them, and
// should it be off, we do. Their nodes take nothing new until they are gone.
void ControlLoop::handle_orphans() {
  for (auto& [key, retry_at] : orphans_) {
    if (retry_at > now_) continue;
    retry_at = now_ + kOrphanRetry;
    writer_.submit({.point = "orphan-delete", .run = [client = client_, pod_key = key] {
                      delete_if_orphan(client, pod_key);
                      return [] {};
                    }});
  }
}

}  // namespace control
