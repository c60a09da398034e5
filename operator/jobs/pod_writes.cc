#include "operator/jobs/pod_writes.h"

#include <algorithm>
#include <utility>

#include "api/node_timetable.h"
#include "api/wellknown.h"
#include "operator/gang/pod_builder.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/job_report.h"
#include "operator/nodes/turns.h"
#include "operator/translate/cpu_set.h"
#include "operator/translate/units.h"

namespace control {
namespace {

constexpr base::Duration kPodDeleteRetry = std::chrono::milliseconds{500};
// So long after its start a job waits for a service account that is not there yet.
constexpr base::Duration kAccountPatience = std::chrono::seconds{15};

// A namespace that was made a moment ago has no service account; its controller makes it soon.
// That is no refusal with a back-off of minutes.
// SOURCE: the sentence of kube-apiserver's ServiceAccount admission plugin.
bool lacks_account_still(const JobRecord& job, const base::Error& error, base::Instant now) {
  // The code alone does not tell this from a real refusal, so the sentence has to.
  if (error.code != base::Code::kPermissionDenied ||
      error.message.find("error looking up service account") == std::string::npos) {
    return false;
  }
  // Ready=False since the start.
  const kube::Condition* ready = kube::find_condition(job.wanted().conditions, kube::kReady);
  return ready != nullptr && ready->last_transition_time &&
         now < *ready->last_transition_time + kAccountPatience;
}

// The API server will not take the pod as it is, however often it is tried.
bool is_refused_for_good(base::Code code) {
  switch (code) {
    case base::Code::kInvalidArgument:
    case base::Code::kPermissionDenied:
    case base::Code::kTooLarge:
      return true;
    case base::Code::kUnauthenticated:
    case base::Code::kNotFound:
    case base::Code::kAlreadyExists:
    case base::Code::kConflict:
    case base::Code::kGone:
    case base::Code::kUnavailable:
    case base::Code::kTimeout:
    case base::Code::kCancelled:
    case base::Code::kInternal:
      return false;
  }
  return false;
}

}  // namespace

// Reads the template, which the informers do not keep, and makes the pods when it has come. Often
// the answer to the commit point has brought it already (keep_template), which saves the read.
void PodWrites::launch(JobRecord& job, const std::vector<int>& missing) {
  const bool all_under_way = std::includes(job.start.creating.begin(), job.start.creating.end(),
                                           missing.begin(), missing.end());
  if (job.deleted || job.start.launching || all_under_way) return;
  // Rule 2. The answer to the status or to the last timetable touches the job, and it comes here
  // again.
  if (!gate_.may_create_pods(job.uid, job.start.nodes)) return;
  if (!job.start.pod_tries.may_begin(parts_.now))
    return parts_.jobs.set_timer(job, job.start.pod_tries.due());
  if (job.is_adopted()) return pin_pods(job, missing);
  if (!job.start.launch_template.empty()) {
    kube::Job source = *job.object;
    source.spec.pod_template = std::exchange(job.start.launch_template, {});
    return create_pods(job, std::move(source));
  }
  job.start.launching = true;
  // The informers keep no templates: it is read when it is needed.
  writer_.submit(ReadTemplate{job.key, job.uid});
}

void PodWrites::answered(TemplateRead&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.uid);
  if (job == nullptr) return;
  job->start.launching = false;
  parts_.jobs.touch(job->uid);
  if (!outcome.result.ok()) {
    job->start.pod_tries.failed(parts_.now);
    return;
  }
  // A Job that was deleted and made again under its name has another template, and one that is
  // ending needs none.
  if (outcome.result->metadata.uid == job->uid && job->is_allocated() && !job->wanted().ending) {
    job->start.launch_template = outcome.result->spec.pod_template;  // launch() goes on
  }
}

void PodWrites::keep_template(const kube::Job& answer) {
  JobRecord* job = parts_.jobs.find(answer.metadata.uid);
  if (job == nullptr || !job->is_allocated() || job->wanted().ending) return;
  // The template is large; it is kept only for as long as pods are to be made from it.
  if (!job->pods.empty() || !job->start.creating.empty()) return;
  job->start.launch_template = answer.spec.pod_template;
}

// A pod that exists, or whose creation is under way, is left out; what waits goes on waiting.
void PodWrites::create_pods(JobRecord& job, kube::Job source) {
  source.status = job.wanted();
  ensure_service(job);
  GangStart& start = job.start;
  std::deque<int> slots;
  if (start.to_create) slots = std::move(start.to_create->slots);
  for (const PodSlot& slot : start.slots) {
    if (job.pods.contains(slot.name) || !start.creating.insert(slot.index).second) continue;
    slots.push_back(slot.index);
  }
  if (slots.empty()) return;
  start.to_create.emplace(PodsToCreate{std::move(source), gang_layout(start.slots), slots});
  line_.add(job.uid);
}

// What has begun to end before its turn came has no pods to create any more.
std::vector<CreatePod> PodWrites::due(std::size_t room) {
  std::vector<CreatePod> effects;
  while (effects.size() < room && !line_.empty()) {
    JobRecord* job = parts_.jobs.peek(line_.first());
    if (job != nullptr && job->wanted().ending) withdraw(*job);
    if (job == nullptr || !job->start.to_create) {
      (void)line_.take_first();
    } else {
      effects.push_back(take_next(*job));
    }
  }
  return effects;
}

CreatePod PodWrites::take_next(JobRecord& job) {
  std::optional<PodsToCreate>& waiting = job.start.to_create;
  const PodSlot& slot = job.start.slots[static_cast<std::size_t>(waiting->slots.front())];
  CreatePod effect{
      waiting->job,
      waiting->gang,
      {.kill_wait = parts_.policy.configuration().cluster.kill_wait, .cpuset = cpuset_for(slot)},
      slot};
  waiting->slots.pop_front();
  if (waiting->slots.empty()) waiting.reset();
  return effect;
}

void PodWrites::withdraw(JobRecord& job) {
  if (!job.start.to_create) return;
  for (const int slot : job.start.to_create->slots) job.start.creating.erase(slot);
  job.start.to_create.reset();
}

std::string PodWrites::cpuset_for(const PodSlot& slot) const {
  if (!binds_cores(parts_.policy.configuration().cluster)) return "";
  const kube::NodeTimetable* table = parts_.nodes.table(slot.node);
  return cpuset_of(slot.cores, table == nullptr ? std::nullopt : table->status.topology);
}

void PodWrites::pin_pods(JobRecord& job, const std::vector<int>& missing) {
  kube::Job source = *job.object;
  source.status = job.wanted();
  const Shared<kube::Job> shared{std::move(source)};
  for (const int index : missing) {
    if (!job.start.creating.insert(index).second) continue;
    const auto at = static_cast<std::size_t>(index);
    const kube::AdoptedPod& pod = job.object->spec.adopted[at];
    const PodSlot& slot = job.start.slots[at];
    writer_.submit(PinPod{{job.key.ns, pod.name}, pod.uid, shared, slot, cpuset_for(slot)});
  }
}

void PodWrites::answered(const PodPinned& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  if (job == nullptr || job->wanted().starts.value_or(0) != outcome.starts) return;
  job->start.creating.erase(outcome.slot.index);
  parts_.jobs.touch(job->uid);
  if (outcome.is_gone) {
    job->start.gone.insert(outcome.slot.index);
  } else if (outcome.result.ok()) {
    job->start.pod_tries.succeeded();
  } else if (outcome.result.error().code == base::Code::kConflict) {
    job->start.pod_tries.lost_race();
  } else {
    ++counters_.write_failures;
    job->start.pod_tries.failed(parts_.now);
    parts_.report.warn("pod not pinned", job_fields(*job) + " pod=" + outcome.slot.name +
                                             " error=\"" + outcome.result.error().message + "\"");
  }
}

void PodWrites::ensure_service(JobRecord& job) {
  GangStart& start = job.start;
  if (start.has_service || !needs_service(*job.object, start.slots.size())) return;
  if (start.service_tries.is_under_way()) return;
  if (!start.service_tries.may_begin(parts_.now))
    return parts_.jobs.set_timer(job, start.service_tries.due());
  start.service_tries.begin();
  writer_.submit(CreateService{build_service(*job.object), job.uid});
}

void PodWrites::answered(ServiceCreated&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  if (job == nullptr) return;
  GangStart& start = job->start;
  if (outcome.status.ok()) {
    start.service_tries.succeeded();
    start.has_service = true;
    return;
  }
  ++counters_.write_failures;
  start.service_tries.failed(parts_.now);
  parts_.jobs.touch(job->uid);
  const std::string& why = outcome.status.error().message;
  if (std::exchange(start.service_problem, why) == why) return;  // it has been said
  parts_.report.warn("service not made", job_fields(*job) + " error=\"" + why + "\"");
  tell_event(parts_.report, *job, true, "ServiceNotMade", why);
}

// Returns how to undo the start if the pod can never be made as it is; nullopt if it was made, or
// if the creation will be tried again.
std::optional<StartUndo> PodWrites::answered(const PodCreated& outcome) {
  const base::Result<kube::Pod>& result = outcome.result;
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  // Of a start that is over nothing follows: its pod, if there is one, is a stale one.
  if (job == nullptr || job->wanted().starts.value_or(0) != outcome.starts) return std::nullopt;
  job->start.creating.erase(outcome.slot.index);
  parts_.jobs.touch(job->uid);
  // AlreadyExists with our own UID counts as made: the answer to an earlier try was lost.
  if (outcome.was_built && result.ok() && job_uid_of(*result) == job->uid) {
    job->start.pod_tries.succeeded();
    return std::nullopt;
  }
  if (job->wanted().ending) return std::nullopt;
  if (!outcome.was_built) {  // the template's memory limits do not fit this node's part
    return StartUndo{.hold = true, .message = result.error().message};
  }
  if (result.ok()) {
    return StartUndo{
        .hold = true,
        .message = "a pod named " + outcome.slot.name + " exists and is not this job's; delete it"};
  }
  ++counters_.write_failures;
  // Everything else is tried again with a back-off. The job keeps its nodes in the meantime.
  if (!is_refused_for_good(result.error().code) ||
      lacks_account_still(*job, result.error(), parts_.now)) {
    job->start.pod_tries.failed(parts_.now);
    return std::nullopt;
  }
  return StartUndo{.api_refused = true, .message = result.error().message};
}

// Deletes the pod, unless that was asked for already. `kill_at`: the end of its grace time.
//
// * Of a finished pod nothing is deleted while the job ends: its log is what users look for.
// * On a lost node no kubelet confirms the end, so the object is removed at once.
void PodWrites::end_pod(JobRecord& job, const kube::Pod& pod,
                        std::optional<base::Instant> kill_at) {
  if (job.is_adopted()) return stop_pod(job, pod);
  const std::string& uid = pod.metadata.uid;
  const bool lost = parts_.nodes.is_lost(node_of(pod).value_or(""));
  if (is_finished(pod) && job.wanted().ending) return;  // its log stays until the next start
  // On a lost node the deletion that was asked for earlier still waits for its kubelet.
  if (pod.metadata.deletion_timestamp && !lost) return;
  if (!job.deleting.insert(uid).second) return;
  std::optional<std::chrono::seconds> grace_period;
  if (lost) {
    grace_period = std::chrono::seconds{0};  // no kubelet will ever confirm it
  } else if (kill_at && !is_finished(pod)) {
    // Zero would remove the record of a process that may still run.
    grace_period =
        std::chrono::seconds{std::max<std::int64_t>(whole_seconds_up(*kill_at - parts_.now), 1)};
  }
  writer_.submit(DeletePod{kube::key_of(pod.metadata), uid, job.uid, grace_period});
}

// The pod has its own grace period. If its kubelet is lost, or has not got the pod yet, nothing can
// end it: its node stays taken until the pod is deleted.
void PodWrites::stop_pod(JobRecord& job, const kube::Pod& pod) {
  if (is_finished(pod) || pod.metadata.deletion_timestamp) return;
  if (!job.deleting.insert(pod.metadata.uid).second) return;
  writer_.submit(StopPod{kube::key_of(pod.metadata), pod.metadata.uid, job.uid});
}

void PodWrites::end_pods(JobRecord& job, std::optional<base::Instant> kill_at) {
  withdraw(job);
  for (const auto& [name, pod] : job.pods) end_pod(job, *pod, kill_at);
}

void PodWrites::end_stale_pods(JobRecord& job) {
  for (const std::string& name : job.stale_pods) {
    const kube::Pod& pod = *job.pods.at(name);
    // Between a requeue and the next start they may stay: their logs are still of use.
    if (job.is_allocated() || !is_finished(pod)) end_pod(job, pod, std::nullopt);
  }
}

bool PodWrites::has_pods_left(const JobRecord& job) const {
  return std::any_of(job.pods.begin(), job.pods.end(), [&](const auto& entry) {
    return !is_finished(*entry.second) &&
           !parts_.nodes.is_lost(node_of(*entry.second).value_or(""));
  });
}

// A pod that is gone, or that was made anew under its name, needs no further try; its watch tells.
void PodWrites::answered(PodDeleted&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  if (job == nullptr || outcome.status.ok()) return;
  const auto code = outcome.status.error().code;
  if (code == base::Code::kNotFound || code == base::Code::kConflict) return;
  ++counters_.write_failures;
  job->deleting.erase(outcome.uid);
  // Soon, because the nodes are kept for as long as a pod is there.
  parts_.jobs.set_timer(*job, parts_.now + kPodDeleteRetry);
}

}  // namespace control
