#include "operator/bench/instant_server.h"

#include <utility>

#include "api/wellknown.h"
#include "translation/task_key.h"

namespace control {
namespace {

// Sets a condition to True, as of now.
void become_ready(kube::Conditions& conditions, std::string_view type, base::Instant now) {
  (void)kube::set_condition(conditions,
                            {.type = std::string{type},
                             .status = kube::ConditionStatus::kTrue,
                             .last_transition_time = now,
                             .reason = "Bench"},
                            now);
}

}  // namespace

template <typename T>
// Stores a new version and tells the inbox of it, as a watch would, at the same moment. UID and
// time of creation stay if they are there.
T InstantServer::store(T object) {
  const kube::ObjectKey key = kube::key_of(object.metadata);
  object.metadata.resource_version = std::to_string(++version_);
  if (object.metadata.uid.empty()) object.metadata.uid = "uid-" + std::to_string(version_);
  if (!object.metadata.creation_timestamp) object.metadata.creation_timestamp = clock_.wall();
  const auto shared = std::make_shared<const T>(object);
  of<T>()[key] = shared;
  inbox_.changed<T>(shared);
  arrived_ = true;
  return object;
}

template <typename T>
// The definitions are here and not in the header, so the kinds that benchmarks need are named
// below.
void InstantServer::put(T object) {
  (void)store(std::move(object));
}
template void InstantServer::put(kube::Job object);
template void InstantServer::put(kube::Node object);
template void InstantServer::put(kube::Partition object);
template void InstantServer::put(kube::SchedulerConfig object);

template <typename T>
void InstantServer::remove(const kube::ObjectKey& key) {
  // Removing what is not there does nothing, as with a second deletion.
  const auto found = of<T>().extract(key);
  if (!found) return;
  inbox_.deleted<T>(found.mapped());
  arrived_ = true;
}
template void InstantServer::remove<kube::Job>(const kube::ObjectKey& key);

void InstantServer::list() {
  WatchedKinds::for_each([this]<typename T>(std::type_identity<T>) {
    for (const auto& [key, object] : of<T>()) inbox_.changed<T>(object);
  });
}

// Carried out at once and in the order of submission: the bench measures the operator, not a
// server.
void InstantServer::submit(Effect effect) {
  // By the names of write points, which the report shows.
  ++counts_[std::string{to_string(point_of(effect))}];
  arrived_ = true;
  inbox_.completed(std::visit([this](const auto& each) { return carry_out(each); }, effect));
}

template <typename T>
// The status replaces the one that is stored. There are no conflicts, since the operator is the
// only writer.
Outcome InstantServer::carry_out(const PatchStatus<T>& effect) {
  const kube::ObjectKey key = kube::key_of(effect.to->metadata);
  const auto found = of<T>().find(key);
  // A fresh copy of the object, which is read only after a lost race; here no other writer exists.
  const base::Error unused{base::Code::kInternal, ""};
  if (found == of<T>().end()) {
    return StatusPatched<T>{key, effect.from->metadata.uid,
                            base::Error{base::Code::kNotFound, "gone"}, unused};
  }
  T object = *found->second;
  object.status = effect.to->status;
  return StatusPatched<T>{key, object.metadata.uid, store(std::move(object)), unused};
}

// The node's agent obeys at once.
Outcome InstantServer::carry_out(const PutTimetable& effect) {
  kube::NodeTimetable object = *effect.object;
  const auto found = of<kube::NodeTimetable>().find(kube::key_of(object.metadata));
  if (found != of<kube::NodeTimetable>().end()) object.metadata.uid = found->second->metadata.uid;
  object.status.observed_revision = object.spec.revision;
  become_ready(object.status.conditions, kube::kReady, clock_.wall());
  become_ready(object.status.conditions, "ClockSynchronized", clock_.wall());
  return TimetablePut{effect.object->metadata.name, effect.object->spec, store(std::move(object)),
                      base::Error{base::Code::kInternal, ""}};
}

// At once: the agent, which would have to let go first, obeys everything.
Outcome InstantServer::carry_out(const DeleteTimetable& effect) {
  remove<kube::NodeTimetable>({"", effect.node});
  return TimetableDeleted{effect.node, {}};
}

// Creates or replaces; the UID stays.
Outcome InstantServer::carry_out(const PutUsage& effect) {
  kube::UsageRecord object = *effect.object;
  const auto found = of<kube::UsageRecord>().find(kube::key_of(object.metadata));
  if (found != of<kube::UsageRecord>().end()) object.metadata.uid = found->second->metadata.uid;
  return UsagePut{store(std::move(object)), base::Error{base::Code::kInternal, ""}};
}

Outcome InstantServer::carry_out(const ReadRecorded&) {
  return RecordedRead{base::Error{base::Code::kNotFound, "no records"}};
}

// REQUIRES: the Job exists.
Outcome InstantServer::carry_out(const ReadTemplate& effect) {
  return TemplateRead{effect.uid, job(effect.job)};
}

// It runs at once, on the node that the operator chose.
Outcome InstantServer::carry_out(const CreatePod& effect) {
  const kube::Job& job = *effect.job;
  kube::Pod pod;
  pod.metadata.name = effect.slot.name;
  pod.metadata.ns = job.metadata.ns;
  pod.metadata.owner_references.push_back(
      {.api_version = std::string{kube::kGroup} + "/" + std::string{kube::kGroupVersion},
       .kind = "Job",
       .name = job.metadata.name,
       .uid = job.metadata.uid,
       .controller = true});
  const std::optional<int> task = effect.gang->array_task();
  if (task) pod.metadata.labels[std::string{kube::kLabelArrayTask}] = std::to_string(*task);
  pod.spec.node_name = effect.slot.node;
  pod.spec.containers.push_back({.name = "main"});
  pod.status.phase = kube::PodPhase::kRunning;
  pod.status.container_statuses.push_back(
      {.name = "main", .state = {.running = kube::ContainerRunning{clock_.wall()}}});
  return PodCreated{.job_uid = record_key(job.metadata.uid, task),
                    .starts = job.status.starts.value_or(0),
                    .slot = effect.slot,
                    .result = store(std::move(pod))};
}

// Without a grace time: the program ends at once.
Outcome InstantServer::carry_out(const DeletePod& effect) {
  remove<kube::Pod>(effect.key);
  return PodDeleted{effect.uid, effect.job_uid, {}};
}

// Each pod is shown at once.
Outcome InstantServer::carry_out(const ReadPod& effect) {
  return PodRead{effect.key, effect.uid, base::Error{}};
}

// It has no pods that others have made.
Outcome InstantServer::carry_out(const PinPod& effect) {
  return PodPinned{.job_uid = effect.job->metadata.uid,
                   .slot = effect.slot,
                   .is_gone = true,
                   .result = base::Error{}};
}

// The same for other pods, of which there are none.
Outcome InstantServer::carry_out(const StopPod& effect) {
  return PodDeleted{effect.uid, effect.job_uid, {}};
}

// Nothing here looks a name up.
Outcome InstantServer::carry_out(const CreateService& effect) {
  return ServiceCreated{effect.job_uid, {}};
}

// No pod reads it.
Outcome InstantServer::carry_out(const DeleteStepObjects&) {
  return StepObjectsDeleted{};
}

Outcome InstantServer::carry_out(const CreateStepSecret& effect) {
  return StepSecretCreated{effect.job_uid, effect.starts, {}};
}

// Every pod would be taken.
Outcome InstantServer::carry_out(const TryPod& effect) {
  return PodTried{effect.uid, {}};
}

// Creates the configuration if there is none, like the real one.
Outcome InstantServer::carry_out(const ReserveIds& effect) {
  kube::SchedulerConfig config;
  config.metadata.name = std::string{kube::kSchedulerConfigName};
  const auto found = of<kube::SchedulerConfig>().find(kube::key_of(config.metadata));
  if (found != of<kube::SchedulerConfig>().end()) config = *found->second;
  config.status.next_job_id = effect.end;
  return IdsReserved{effect.first, effect.end, store(std::move(config)), std::nullopt};
}

// REQUIRES: the node exists.
Outcome InstantServer::carry_out(const SetTaints& effect) {
  kube::Node node = *of<kube::Node>().at({"", effect.node});
  node.spec.taints = effect.taints;
  return TaintsSet{effect.node, store(std::move(node))};
}

// Nothing here looks at a pod's conditions.
Outcome InstantServer::carry_out(const NotePod& effect) {
  return PodNoted{effect.uid, effect.job_uid, {}};
}

// The Job's pods stay: nothing collects them here.
Outcome InstantServer::carry_out(const DeleteJob& effect) {
  remove<kube::Job>(effect.key);
  return JobDeleted{effect.key, {}};
}

// REQUIRES: the Job has an owner, as all Jobs that the operator makes.
Outcome InstantServer::carry_out(const CreateJob& effect) {
  return JobCreated{kube::controller_of(effect.job->metadata)->uid,
                    kube::key_of(effect.job->metadata), store(kube::Job{*effect.job})};
}

Outcome InstantServer::carry_out(const MakeForecast& effect) {
  const sched::ForecastQuestion& question = *effect.question;
  return ForecastMade{.uid = effect.uid,
                      .job = question.request.id,
                      .as_of = question.state.now,
                      .forecast = sched::forecast(question)};
}

// No pod is left without its Job here.
Outcome InstantServer::carry_out(const DeleteOrphan& effect) {
  return OrphanDeleted{effect.pod};
}

}  // namespace control
