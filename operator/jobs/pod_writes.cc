#include "operator/jobs/pod_writes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/node_timetable.h"
#include "api/wellknown.h"
#include "operator/gang/ending_time.h"
#include "operator/gang/image_volume.h"
#include "operator/gang/pod_builder.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/status_after.h"
#include "operator/nodes/turns.h"
#include "scheduler/model/memory_asked.h"
#include "scheduler/select/memory_demand.h"
#include "translation/cpu_set.h"
#include "translation/job_translation.h"
#include "translation/task_key.h"
#include "translation/units.h"

namespace control {
namespace {

constexpr base::Duration kPodDeleteRetry = std::chrono::milliseconds{500};
// The time after its start in which a job waits for a missing service account.
constexpr base::Duration kAccountPatience = std::chrono::seconds{15};
// Creations and pins that fail without being refused (5xx, no answer): this long nothing is said,
// and that long the job keeps its nodes. An outage of the API server, which is over sooner or costs
// this leader its Lease, must not undo starts; a webhook that is down may be so for days.
constexpr base::Duration kFailuresTold = std::chrono::seconds{15};
constexpr base::Duration kFailuresPatience = std::chrono::minutes{5};

// A namespace that was made a moment ago has no service account; its controller makes it soon.
// Such a failure is not a refusal with a back-off of minutes.
// SOURCE: the sentence of kube-apiserver's ServiceAccount admission plugin.
bool lacks_account_still(const JobRecord& job, const base::Error& error, base::Instant now) {
  // The code alone does not distinguish this from a real refusal, so the sentence must.
  if (error.code != base::Code::kPermissionDenied ||
      error.message.find("error looking up service account") == std::string::npos) {
    return false;
  }
  const std::optional<base::Instant> since = starting_since(job.wanted());
  return since && now < *since + kAccountPatience;
}

// The step is that of the numbers, or 1 where they have no equal ones (recorded).
ArrayPlace place_in_array(const JobRecord& array, int task) {
  const sched::TaskSet& all = array.array->wishes->all;
  ArrayPlace place{.job_id = array.id.number(), .task = task, .count = all.size()};
  place.min = all.next().value_or(task);
  place.max = all.last().value_or(task);
  const int step = all.next(place.min + 1).value_or(place.min + 1) - place.min;
  const int rows = (place.max - place.min) / step + 1;
  bool is_even = rows == place.count;
  for (int i = 0; is_even && i < rows; ++i) is_even = all.contains(place.min + i * step);
  // SOURCE: recorded: two tasks are a list.
  if (is_even && rows > 2) place.step = step;
  return place;
}

// Returns true if the pod is being deleted and would be killed after that, because its job was
// canceled in its grace time. Times of deletions are rounded to whole seconds.
bool ends_after(const kube::Pod& pod, std::optional<base::Instant> kill_at) {
  constexpr base::Duration kRounding = std::chrono::seconds{2};
  const auto& deleted_at = pod.metadata.deletion_timestamp;
  return kill_at && deleted_at && *deleted_at > *kill_at + kRounding;
}

// Returns true if a place has no pod, and one is to be made for it.
bool lacks_pods(const JobRecord& job) {
  const StartPods& start = *job.start;
  for (std::size_t i = 0; i < start.slots.size(); ++i) {
    const PodSlot& slot = start.slots[i];
    const bool has_pod = start.slot_pods[i].pod != nullptr;
    if (slot.has_pod() && !has_pod && !start.members->has_succeeded(slot.pod_index)) return true;
  }
  return false;
}

}  // namespace

// Reads the template, which the informers do not keep, and makes the pods when it has come. Often
// the answer to the commit point has brought it already (keep_template), which saves the read.
void PodWrites::launch(JobRecord& job, const std::vector<int>& missing,
                       std::optional<base::Duration> time_limit) {
  job.launch.edit().time_limit = time_limit;
  // Both are sorted: `missing` by slot, `creating` because it is a set.
  // Each answer touches the job and leads here again; a template is not read for creations that are
  // all under way.
  const bool all_under_way = std::includes(job.launch->creating.begin(), job.launch->creating.end(),
                                           missing.begin(), missing.end());
  if (job.deleted || job.launch->launching || all_under_way) return;
  // Rule 2. The answer to the status or to the last timetable touches the job, and it comes here
  // again.
  if (!gate_.may_create_pods(job.uid, job.start->nodes)) return;
  if (!job.launch->pod_tries.may_begin(parts_.now))
    return parts_.jobs.set_timer(job, job.launch->pod_tries.due());
  if (job.is_adopted()) return line_up(job, *job.object, missing);
  if (!job.launch->launch_template.empty()) {
    // Before the first pod, which would wait for it in kubelet's back-off.
    if (job.launch->launch_batch && !has_step_secret(job)) return;
    // Without the status, which line_up gives it: that of an array has all tasks.
    kube::Job source{job.object->metadata, job.object->spec, {}};
    // Given away, not copied: the template is the largest part of a job. If a creation fails later,
    // it is read again.
    source.spec.pod_template = std::exchange(job.launch.edit().launch_template, {});
    source.spec.batch = std::exchange(job.launch.edit().launch_batch, {});
    ensure_service(job);
    return line_up(job, std::move(source), missing);
  }
  job.launch.edit().launching = true;
  // The informers keep no templates: it is read when it is needed.
  writer_.submit(ReadTemplate{job.key, job.uid});
}

void PodWrites::answered(TemplateRead&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.uid);
  if (job == nullptr) return;
  job->launch.edit().launching = false;
  parts_.jobs.touch(job->uid);
  if (!outcome.result.ok()) {
    // Any error, also NotFound: a Job that is gone is soon reported by its watch, and until then
    // the back-off keeps the tries apart.
    job->launch.edit().pod_tries.failed(parts_.now);
    return;
  }
  // A Job that was deleted and made again under its name has another template, and one that is
  // ending needs none.
  if (outcome.result->metadata.uid == job->object_uid() && job->is_allocated() &&
      !job->wanted().ending) {
    job->launch.edit().launch_template = outcome.result->spec.pod_template;  // launch() goes on
    job->launch.edit().launch_batch = outcome.result->spec.batch;
  }
}

void PodWrites::keep_template(const kube::Job& answer, const std::string& key) {
  JobRecord* job = parts_.jobs.find(key);
  if (job == nullptr || !job->is_allocated() || job->wanted().ending) return;
  // The template is large; it is kept only for as long as pods are to be made from it.
  const bool has_all = job->start->members ? !lacks_pods(*job) : !job->pods->empty();
  if (has_all || !job->launch->creating.empty()) return;
  job->launch.edit().launch_template = answer.spec.pod_template;
  job->launch.edit().launch_batch = answer.spec.batch;
}

// A pod whose creation or pinning is under way is left out; what waits goes on waiting.
void PodWrites::line_up(JobRecord& job, kube::Job source, const std::vector<int>& missing) {
  // The pods carry what the commit point says (number of the start, partition, hostlist). The gate
  // was open, so the allocation in it is stored.
  source.status = job.wanted();
  LaunchNotes& launch = job.launch.edit();
  std::deque<int> slots;
  // Pods that still wait are lined up once more with the newer source: the same slots, and the
  // present status.
  if (launch.to_create) slots = std::move(launch.to_create->slots);
  for (const int index : missing) {
    if (launch.creating.insert(index).second) slots.push_back(index);
  }
  if (slots.empty()) return;
  GangLayout gang = gang_layout(job.start->slots);
  if (job.task) gang.array = place_in_array(parts_.jobs.array_of(job), *job.task);
  launch.to_create.emplace(PodsToCreate{std::move(source), std::move(gang), slots});
  // Pods are not handed to the writer here: a gang of thousands would fill its queue, and another
  // job's commit point would stand behind them. due() takes as many as there is room for.
  line_.add(job.uid);
}

// A job that has begun to end before its turn came has no pods left to create.
std::vector<Effect> PodWrites::due(std::size_t room) {
  std::vector<Effect> effects;
  while (effects.size() < room && !line_.empty()) {
    JobRecord* job = parts_.jobs.peek(line_.first());
    if (job != nullptr && job->wanted().ending) withdraw(*job);
    if (job == nullptr || !job->launch->to_create) {
      (void)line_.take_first();
    } else {
      // The job keeps the head of the line until its last pod is taken: one gang that is complete
      // is worth more than two halves.
      effects.push_back(take_next(*job));
    }
  }
  return effects;
}

Effect PodWrites::take_next(JobRecord& job) {
  base::Rare<PodsToCreate>& waiting = job.launch.edit().to_create;
  const auto index = static_cast<std::size_t>(waiting->slots.front());
  waiting->slots.pop_front();
  // Held here, since `waiting` may be emptied below; the effects of one gang share one copy of the
  // Job.
  const Shared<kube::Job> source = waiting->job;
  const Shared<GangLayout> gang = waiting->gang;
  if (waiting->slots.empty()) waiting.reset();
  const PodSlot& slot = job.start->slots[index];
  // Those in force at the start count for all its pods.
  if (!job.launch->defaults) {
    job.launch.edit().defaults = parts_.policy.pod_defaults(job.wanted().partition, job.key.ns);
  }
  if (job.is_adopted()) {
    const kube::AdoptedPod& pod = source->spec.adopted[index];
    return PinPod{{job.key.ns, pod.name}, pod.uid, source, slot, cpuset_for(slot)};
  }
  const kube::Node* const node = parts_.nodes.object(slot.node);
  return CreatePod{source,
                   gang,
                   {.kill_wait = parts_.policy.configuration().cluster.kill_wait,
                    .time_limit = job.launch->time_limit,
                    .defaults = *job.launch->defaults,
                    .mounts_images = node != nullptr && mounts_images(node->status.node_info),
                    .may_requeue = job.request().requeue.value_or(
                        parts_.policy.configuration().cluster.requeue_default),
                    .cpuset = cpuset_for(slot),
                    .devices = devices_for(job, slot),
                    .devices_config = parts_.policy.parameters().devices,
                    .memory = memory_of(job)},
                   slot};
}

// Defaults are those of the start's partition. Memory of GPUs is neither of a CPU nor of a node.
sched::MemoryRequest PodWrites::memory_of(const JobRecord& job) const {
  const sched::Configuration& configuration = parts_.policy.configuration();
  const auto partition = std::ranges::find(configuration.partitions, job.wanted().partition,
                                           &sched::PartitionConfig::name);
  const sched::PartitionConfig own =
      partition != configuration.partitions.end() ? *partition : sched::PartitionConfig{};
  if (sched::memory_demand(configuration.cluster, own, job.request()).mib_per_gpu > 0) return {};
  return sched::memory_asked(job.request().memory, own.default_memory,
                             configuration.cluster.default_memory);
}

void PodWrites::withdraw(JobRecord& job) {
  LaunchNotes& launch = job.launch.edit();
  if (!launch.to_create) return;
  // Pods that the writer has stay in `creating`: its answer may bring one, and the ending waits for
  // that (run_ending).
  for (const int slot : launch.to_create->slots) launch.creating.erase(slot);
  launch.to_create.reset();
}

// A job that asks for no devices gets none, also if it keeps others off those of its whole nodes.
DeviceResources PodWrites::devices_for(const JobRecord& job, const PodSlot& slot) const {
  if (!kube::asks_for_devices(job.object->spec.resources)) return {};
  return resources_of(slot.devices, parts_.nodes.object(slot.node),
                      parts_.policy.parameters().devices);
}

std::string PodWrites::cpuset_for(const PodSlot& slot) const {
  if (!binds_cores(parts_.policy.configuration().cluster)) return "";
  const kube::NodeTimetable* table = parts_.nodes.table(slot.node);
  return cpuset_of(slot.cores, table == nullptr ? std::nullopt : table->status.topology);
}

// Returns how to undo the start if its pods cannot be pinned.
std::optional<StartUndo> PodWrites::answered(const PodPinned& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  // The number of the start separates the answer to an earlier start from one to this start.
  if (job == nullptr || job->wanted().starts.value_or(0) != outcome.starts) return std::nullopt;
  job->launch.edit().creating.erase(outcome.slot.index);
  parts_.jobs.touch(job->uid);
  if (outcome.is_gone) {
    // GangRunner::run_adopted decides what that means: before the gang is ready the whole start has
    // failed.
    job->launch.edit().gone.insert(outcome.slot.index);
    return std::nullopt;
  }
  if (outcome.result.ok()) {
    note_made(*job);
    return std::nullopt;
  }
  if (outcome.result.error().code == base::Code::kConflict) {
    job->launch.edit().pod_tries.lost_race();
    return std::nullopt;
  }
  if (job->wanted().ending) return std::nullopt;
  std::optional<StartUndo> undo =
      note_failure(*job, job->launch.edit().pod_tries, outcome.result.error());
  if (!undo) return std::nullopt;
  // How a start fails depends on whether a pod has lost its gate by it, so pins that are under way
  // are waited for. None is asked for meanwhile.
  withdraw(*job);
  return job->launch->creating.empty() ? undo : std::nullopt;
}

// The tasks of an array share one, which is noted in the record of the array.
void PodWrites::ensure_service(JobRecord& job) {
  if (!needs_service(*job.object, job.start->slots.size())) return;
  const bool is_shared = job.task && !job.object->spec.batch;
  JobRecord& owner = is_shared ? parts_.jobs.array_of(job) : job;
  LaunchNotes& notes = owner.launch.edit();
  // Pods do not wait for the Service: they resolve names only once they run, and by then it is
  // there as a rule.
  if (notes.has_service || notes.service_tries.is_under_way()) return;
  if (!notes.service_tries.may_begin(parts_.now))
    return parts_.jobs.set_timer(job, notes.service_tries.due());
  notes.service_tries.begin();
  writer_.submit(CreateService{build_service(*job.object, job.identity()), owner.uid});
}

void PodWrites::answered(ServiceCreated&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  if (job == nullptr) return;
  LaunchNotes& notes = job->launch.edit();
  if (outcome.status.ok()) {
    notes.service_tries.succeeded();
    notes.has_service = true;
    return;
  }
  notes.service_tries.failed(parts_.now);
  ++counters_.write_failures;
  parts_.jobs.touch(job->uid);
  if (job->array) {
    for (const auto& [number, task] : job->array->tasks()) parts_.jobs.touch(task->uid);
  }
  // Once for each reason.
  const std::string& why = outcome.status.error().message;
  if (std::exchange(notes.service_problem, why) == why) return;
  parts_.report.warn("service not made", job_fields(*job, {{"error", why}}));
  tell_event(parts_.report, *job, true, "ServiceNotMade", why);
}

// Returns true if the start needs none, or if it is there; else it is asked for.
bool PodWrites::has_step_secret(JobRecord& job) {
  LaunchNotes& notes = job.launch.edit();
  if (notes.has_step_secret || job.start->slots.size() < 2) return true;
  if (notes.secret_tries.is_under_way()) return false;
  if (!notes.secret_tries.may_begin(parts_.now)) {
    parts_.jobs.set_timer(job, notes.secret_tries.due());
    return false;
  }
  notes.secret_tries.begin();
  writer_.submit(CreateStepSecret{job.key, job.uid, job.wanted().starts.value_or(0)});
  return false;
}

// No pod of the start can be made without it, so a failure counts as one of a pod.
std::optional<StartUndo> PodWrites::answered(const StepSecretCreated& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  // The Secret of an earlier start is useless for this one.
  if (job == nullptr || job->wanted().starts.value_or(0) != outcome.starts) return std::nullopt;
  LaunchNotes& notes = job->launch.edit();
  parts_.jobs.touch(job->uid);
  if (outcome.status.ok()) {
    notes.secret_tries.succeeded();
    notes.has_step_secret = true;
    note_made(*job);
    return std::nullopt;
  }
  if (job->wanted().ending) return std::nullopt;
  base::Error error = outcome.status.error();
  error.message = "the Secret for its steps: " + error.message;
  return note_failure(*job, notes.secret_tries, error);
}

// Returns how to undo the start if the pod can never be made as it is; nullopt if it was made, or
// if the creation will be tried again.
std::optional<StartUndo> PodWrites::answered(const PodCreated& outcome) {
  const base::Result<kube::Pod>& result = outcome.result;
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  // An answer about a start that is over changes nothing: its pod, if there is one, is a stale one.
  if (job == nullptr || job->wanted().starts.value_or(0) != outcome.starts) return std::nullopt;
  job->launch.edit().creating.erase(outcome.slot.index);
  parts_.jobs.touch(job->uid);
  // AlreadyExists with our own UID counts as made: the answer to an earlier try was lost.
  if (outcome.was_built && result.ok() && record_key_of(*result) == job->uid) {
    note_made(*job);
    return std::nullopt;
  }
  // The start is undone already, or ends for another reason.
  if (job->wanted().ending) return std::nullopt;
  if (!outcome.was_built) {  // the template's memory limits do not fit this node's part
    return StartUndo{.hold = true, .message = result.error().message};
  }
  // The pod that has our name belongs to another job, or to a user. The operator never deletes it.
  if (result.ok()) {
    return StartUndo{
        .hold = true,
        .message = "a pod named " + outcome.slot.name + " exists and is not this job's; delete it"};
  }
  return note_failure(*job, job->launch.edit().pod_tries, result.error());
}

// Notes that a creation or a pin failed. Returns how to undo the start if it was refused, or if
// nothing else has happened for long. Otherwise it is tried again with a back-off.
std::optional<StartUndo> PodWrites::note_failure(JobRecord& job, Attempts& tries,
                                                 const base::Error& error) {
  ++counters_.write_failures;
  tries.failed(parts_.now);
  const bool is_final = is_refusal(error.code) && !lacks_account_still(job, error, parts_.now);
  if (!is_final && !have_failed_for_long(job, error.message)) return std::nullopt;
  return StartUndo{.api_refused = true, .message = error.message};
}

void PodWrites::note_made(JobRecord& job) {
  job.launch.edit().pod_tries.succeeded();
  job.launch.edit().failing_pods.reset();
  if (!std::exchange(job.launch.edit().failing_pods_told, false)) return;
  show_starting(job, "Starting", "its pods are being started");
}

// Notes one more creation, or pin, that has failed. Returns true if nothing else has happened for
// so long that the job must give its nodes back.
bool PodWrites::have_failed_for_long(JobRecord& job, const std::string& why) {
  LaunchNotes& notes = job.launch.edit();
  if (!notes.failing_pods) notes.failing_pods = parts_.now;
  const base::Duration since = parts_.now - *notes.failing_pods;
  if (since >= kFailuresPatience) return true;
  if (since < kFailuresTold || std::exchange(notes.failing_pods_told, true)) return false;
  const std::string reason = job.is_adopted() ? "PodsNotPinned" : "PodsNotMade";
  const std::string what = job.is_adopted() ? "pinned to their nodes: " : "created: ";
  show_starting(job, reason, "its pods cannot be " + what + why);
  parts_.report.warn(job.is_adopted() ? "pods not pinned" : "pods not made",
                     job_fields(job, {{"error", why}}));
  tell_event(parts_.report, job, true, reason, why);
  return false;
}

// Leaves Ready of a gang that is ready, and of which the next pod is made: it says that it runs.
void PodWrites::show_starting(JobRecord& job, const std::string& reason,
                              const std::string& message) {
  if (kube::is_true(job.wanted().conditions, kube::kReady)) return;
  (void)parts_.jobs.set_condition(job, WriteUrgency::kInforms, kube::kReady,
                                  kube::ConditionStatus::kFalse, reason, message);
}

// Deletes the pod, unless that was asked for already. `kill_at`: the end of its grace time.
//
// * Of a finished pod nothing is deleted while the job ends: its log is what users look for.
// * On a lost node no kubelet confirms the end, so the object is removed at once.
// * The grace period of a pod that only says it is of this job is unchecked, so no pod gets more
//   than one that was checked may have. If others have deleted it with a longer one, Kubernetes
//   shortens that.
void PodWrites::end_pod(JobRecord& job, const kube::Pod& pod,
                        std::optional<base::Instant> kill_at) {
  if (job.is_adopted()) return stop_pod(job, pod);
  const std::string& uid = pod.metadata.uid;
  const bool lost = parts_.nodes.is_lost(node_of(pod).value_or(""));
  if (is_finished(pod) && job.wanted().ending) return;  // its log stays until the next start
  const std::chrono::seconds longest = longest_grace(parts_.policy.configuration());
  // The deletion that was asked for earlier still waits for the kubelet of a lost node.
  if (is_ending_within(pod, longest) && !lost && !ends_after(pod, kill_at)) return;
  if (!job.deleting.edit().insert(uid).second) return;
  std::optional<std::chrono::seconds> grace_period = grace_within(pod, longest);
  if (lost) {
    grace_period = std::chrono::seconds{0};  // no kubelet will ever confirm it
  } else if (kill_at && !is_finished(pod)) {
    // Zero would remove the record of a process that may still run.
    // Rounded up and at least a second, since the API has whole seconds.
    grace_period =
        std::chrono::seconds{std::max<std::int64_t>(whole_seconds_up(*kill_at - parts_.now), 1)};
  }
  writer_.submit(DeletePod{kube::key_of(pod.metadata), uid, job.uid, grace_period});
}

// The pod has its own grace period. If its kubelet is lost, or has not got the pod yet, nothing can
// end it: its node stays taken until the pod is deleted.
void PodWrites::stop_pod(JobRecord& job, const kube::Pod& pod) {
  if (is_finished(pod) || pod.metadata.deletion_timestamp) return;
  if (!job.deleting.edit().insert(pod.metadata.uid).second) return;
  writer_.submit(StopPod{kube::key_of(pod.metadata), pod.metadata.uid, job.uid});
}

void PodWrites::end_pods(JobRecord& job, std::optional<base::Instant> kill_at) {
  withdraw(job);
  for (const auto& [name, pod] : *job.pods) end_pod(job, *pod, kill_at);
}

void PodWrites::end_stale_pods(JobRecord& job) {
  for (const std::string& name : *job.stale_pods) {
    const kube::Pod& pod = *job.pods->at(name);
    // Between a requeue and the next start they may stay: their logs are still of use.
    if (job.is_allocated() || !is_finished(pod)) end_pod(job, pod, std::nullopt);
  }
}

void PodWrites::end_again(JobRecord& job) {
  job.deleting.edit().clear();
}

// Otherwise the set would grow by one UID for each pod that the job ever had. A pod that was made
// again under its name has another UID: the old one is gone.
void PodWrites::observe(const PodPlace& before, const kube::Pod* next) {
  if (before.pod == nullptr) return;
  const std::string& uid = before.pod->metadata.uid;
  JobRecord* job = parts_.jobs.peek(before.job_uid);
  if (job == nullptr || (next != nullptr && next->metadata.uid == uid)) return;
  job->deleting.edit().erase(uid);
}

// The pods of the last tasks stay, as those of any job that has ended: for their logs.
void PodWrites::keep_pods(JobRecord& array, const JobRecord& ended) {
  const bool is_good = ended.wanted().state == kube::JobState::kCompleted;
  KeptPods& kept = array.array->kept_pods.edit();
  for (const auto& [name, pod] : *ended.pods) {
    (is_good ? kept.good : kept.failed).push_back({name, pod->metadata.uid});
  }
  delete_old_pods(array);
}

void PodWrites::delete_old_pods(JobRecord& array) {
  constexpr std::size_t kFailedKept = 100;
  constexpr std::size_t kGoodKept = 10;
  delete_oldest(array, array.array->kept_pods.edit().failed, kFailedKept);
  delete_oldest(array, array.array->kept_pods.edit().good, kGoodKept);
}

// One whose deletion fails is deleted at the next look. Cost: those that are too many.
void PodWrites::delete_oldest(JobRecord& array, std::deque<KeptPods::Pod>& kept, std::size_t most) {
  const std::size_t too_many = kept.size() - std::min(kept.size(), most);
  std::set<std::string>& deleting = array.deleting.edit();
  std::deque<KeptPods::Pod> left;
  for (std::size_t i = 0; i < too_many; ++i) {
    KeptPods::Pod pod = std::move(kept.front());
    kept.pop_front();
    const kube::ObjectKey key{array.key.ns, pod.name};
    const PodPlace* place = places_.find(key);
    if (place == nullptr || place->pod == nullptr || place->pod->metadata.uid != pod.uid) {
      deleting.erase(pod.uid);  // it is gone
      continue;
    }
    if (deleting.insert(pod.uid).second) writer_.submit(DeletePod{key, pod.uid, array.uid});
    left.push_back(std::move(pod));
  }
  kept.insert(kept.begin(), std::make_move_iterator(left.begin()),
              std::make_move_iterator(left.end()));
}

// In the order in which they were made.
void PodWrites::restore_kept_pods(JobRecord& array) {
  std::vector<const PodPlace*> places;
  places_.for_each_of_tasks(array.key, array.uid, [&](const PodPlace& place) {
    const bool has_record = parts_.jobs.peek(place.job_uid) != nullptr;
    if (!has_record && is_finished(*place.pod)) places.push_back(&place);
  });
  std::ranges::stable_sort(places, {}, [](const PodPlace* place) {
    return place->pod->metadata.creation_timestamp.value_or(base::Instant{});
  });
  KeptPods& kept = array.array->kept_pods.edit();
  for (const PodPlace* place : places) {
    const auto task = task_in(place->job_uid);
    const auto outcome = task ? array.array->outcomes().of(*task) : kube::TaskOutcome::kNone;
    if (outcome == kube::TaskOutcome::kNone) continue;  // its next start takes it (take_pods)
    const bool is_good = outcome == kube::TaskOutcome::kSucceeded;
    (is_good ? kept.good : kept.failed)
        .push_back({place->pod->metadata.name, place->pod->metadata.uid});
  }
}

// A finished pod holds no CPU or memory. A lost node is gone for good (deleted, or tainted
// out-of-service), so nothing runs there either.
bool PodWrites::is_left(const kube::Pod& pod) const {
  return !is_finished(pod) && !parts_.nodes.is_lost(node_of(pod).value_or(""));
}

bool PodWrites::has_pods_left(const JobRecord& job) const {
  return std::ranges::any_of(*job.pods, [&](const auto& entry) { return is_left(*entry.second); });
}

std::optional<std::set<std::string>> PodWrites::nodes_with_pods_left(const JobRecord& job) const {
  std::set<std::string> nodes;
  for (const auto& [name, pod] : *job.pods) {
    if (!is_left(*pod)) continue;
    const std::optional<std::string> node = node_of(*pod);
    if (!node || node->empty()) return std::nullopt;
    nodes.insert(*node);
  }
  return nodes;
}

// A pod that is gone, or that was created again under its name, needs no further try; its watch
// shows it.
void PodWrites::answered(PodDeleted&& outcome) {
  JobRecord* job = parts_.jobs.find(outcome.job_uid);
  if (job == nullptr || outcome.status.ok()) return;
  const auto code = outcome.status.error().code;
  if (code == base::Code::kNotFound || code == base::Code::kConflict) return;
  ++counters_.write_failures;
  // Out of `deleting`, so that the next look asks for the deletion again.
  job->deleting.edit().erase(outcome.uid);
  // Soon, because the nodes are kept for as long as a pod is there.
  parts_.jobs.set_timer(*job, parts_.now + kPodDeleteRetry);
}

}  // namespace control
