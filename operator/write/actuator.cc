#include "operator/write/actuator.h"

#include <sys/random.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "kube/api/json_text.h"
#include "kube/api/time_format.h"
#include "kube/base64.h"
#include "kube/resource_path.h"
#include "operator/gang/ending_time.h"
#include "operator/gang/pod_pin.h"
#include "operator/gang/step_secret.h"
#include "operator/jobs/pod_index.h"
#include "operator/loop/kept_fields.h"
#include "operator/nodes/orphan_pods.h"
#include "translation/batch_job_translation.h"
#include "translation/task_key.h"

namespace control {
namespace {

using nlohmann::json;

constexpr kube::ResourceInfo kSecrets{"", "v1", "secrets", "Secret", true};
// The bytes that the launchers of a job read (launcher/tls.h).
constexpr std::size_t kStepKeyBytes = 32;
constexpr base::Duration kForecastTakes = std::chrono::seconds{20};

// Writes the form in which the API server stores it, so that a note which is there already compares
// equal.
json encode_note(const kube::Condition& note) {
  return {{"type", note.type},
          {"status", kube::to_string(note.status)},
          {"reason", note.reason},
          {"message", note.message},
          {"lastTransitionTime", kube::format_time(note.last_transition_time.value())}};
}

// The name of each effect in tests that end the operator before or after a write (crash_points.h).
// A status names its own point, because the same write may be any of several commit points.
struct PointOf {
  template <typename T>
  WritePoint operator()(const PatchStatus<T>& effect) const {
    return effect.point;
  }
  WritePoint operator()(const PutTimetable&) const { return WritePoint::kTimetable; }
  WritePoint operator()(const DeleteTimetable&) const { return WritePoint::kTimetableDelete; }
  WritePoint operator()(const PutUsage&) const { return WritePoint::kUsage; }
  WritePoint operator()(const ReadTemplate&) const { return WritePoint::kTemplateRead; }
  WritePoint operator()(const CreatePod&) const { return WritePoint::kPodCreate; }
  WritePoint operator()(const DeletePod&) const { return WritePoint::kPodDelete; }
  WritePoint operator()(const ReadPod&) const { return WritePoint::kPodRead; }
  WritePoint operator()(const PinPod&) const { return WritePoint::kPodPin; }
  WritePoint operator()(const StopPod&) const { return WritePoint::kPodStop; }
  WritePoint operator()(const CreateService&) const { return WritePoint::kServiceCreate; }
  WritePoint operator()(const CreateStepSecret&) const { return WritePoint::kStepSecretCreate; }
  WritePoint operator()(const DeleteStepObjects&) const { return WritePoint::kStepDelete; }
  WritePoint operator()(const TryPod&) const { return WritePoint::kPodTry; }
  WritePoint operator()(const ReserveIds&) const { return WritePoint::kJobIds; }
  WritePoint operator()(const SetTaints&) const { return WritePoint::kTaint; }
  WritePoint operator()(const NotePod&) const { return WritePoint::kPodNote; }
  WritePoint operator()(const CreateJob&) const { return WritePoint::kJobCreate; }
  WritePoint operator()(const DeleteJob&) const { return WritePoint::kJobDelete; }
  WritePoint operator()(const ReadRecorded&) const { return WritePoint::kRecordedRead; }
  WritePoint operator()(const DeleteOrphan&) const { return WritePoint::kOrphanDelete; }
  WritePoint operator()(const MakeForecast&) const { return WritePoint::kForecast; }
};

// kubelet ends the pod at once, whatever deadline it had: a deadline may be lowered, never raised.
base::Status stop_pod(const kube::Client& client, const kube::ObjectKey& pod,
                      const std::string& uid) {
  return client
      .patch<kube::Pod>(pod,
                        {{"metadata", {{"uid", uid}}}, {"spec", {{"activeDeadlineSeconds", 1}}}})
      .status();
}

// Carries out one effect with at most a few requests, on a thread of the writer. The loop has
// decided, and an outcome tells it what the server said and, if the write lost a race, the newest
// object, so that it can decide again without waiting for its watch. Each write names what it was
// decided on (a UID, a resourceVersion, or a name that follows from both), because it may be
// carried out long after the decision, when the object is another one.
//
// What must be judged by the newest state, which only the API server has, is judged here, by pure
// functions of the parts whose decision it is: whether a pod is an orphan (nodes/orphan_pods.h),
// and whether one can be pinned (gang/pod_pin.h). For the rest this part only recognizes what an
// earlier try has made whose answer was lost: an object of that name counts as made if it is of the
// job, or of the owner, that the effect names.
class CarryOut {
 public:
  CarryOut(const kube::Client& client, const PodLauncher& launcher, const std::stop_token& stop)
      : client_{client}, launcher_{launcher}, stop_{stop} {}

  template <typename T>
  Outcome operator()(const PatchStatus<T>& effect) const {
    const T& from = *effect.from;
    StatusPatched<T> outcome{.key = kube::key_of(from.metadata),
                             .uid = from.metadata.uid,
                             .result = client_.patch_status_from(from, *effect.to),
                             .fresh = base::Error{}};
    // Other failures say nothing about the object. Its absence is read again: otherwise nothing
    // would ever be written to it.
    const bool is_read =
        !outcome.result.ok() && (outcome.result.error().code == base::Code::kConflict ||
                                 outcome.result.error().code == base::Code::kNotFound);
    if (is_read) {
      // Read here, on the writer's thread, so that the loop can decide on the newest version at
      // once instead of waiting for its watch.
      outcome.fresh = client_.get<T>(outcome.key);
    }
    return outcome;
  }

  Outcome operator()(const PutTimetable& effect) const {
    auto [result, fresh] = put(*effect.object, effect.exists, effect.version);
    return TimetablePut{.node = effect.object->metadata.name,
                        .spec = effect.object->spec,
                        .result = std::move(result),
                        .fresh = std::move(fresh)};
  }

  // Only the version that the loop has seen: a table that was written since may list pods.
  Outcome operator()(const DeleteTimetable& effect) const {
    return TimetableDeleted{effect.node,
                            client_.remove<kube::NodeTimetable>(
                                {.ns = "", .name = effect.node},
                                {.uid = effect.uid, .resource_version = effect.version})};
  }

  Outcome operator()(const PutUsage& effect) const {
    auto [result, fresh] = put(*effect.object, effect.exists, effect.version);
    return UsagePut{.result = std::move(result), .fresh = std::move(fresh)};
  }

  // Templates are by far the largest part of a Job, so the loop has them read when it needs them.
  Outcome operator()(const ReadTemplate& effect) const {
    return TemplateRead{effect.uid, client_.get<kube::Job>(effect.job)};
  }

  // A pod that could not be built is told apart (was_built): to try again would give the same
  // error.
  Outcome operator()(const CreatePod& effect) const {
    const kube::Job& job = *effect.job;
    PodCreated outcome{.job_uid = record_key(job.metadata.uid, effect.gang->array_task()),
                       .starts = job.status.starts.value_or(0),
                       .slot = effect.slot,
                       .result = base::Error{}};
    // Built here and not in the loop: the JSON of a pod is large, and a gang has thousands of them.
    const auto pod = build_pod(job, effect.slot, *effect.gang, effect.options, launcher_);
    if (!pod.ok()) {
      outcome.was_built = false;
      outcome.result = pod.error();
      return outcome;
    }
    outcome.result =
        client_.create_json<kube::Pod>(job.metadata.ns, *pod, {.fields = &fields_of_pods()});
    if (outcome.result.ok()) return outcome;
    const base::Code code = outcome.result.error().code;
    const bool exists = code == base::Code::kAlreadyExists;
    if (!exists && !is_refusal(code)) return outcome;
    // The name follows from the job's UID and the number of the start, so a pod of that name is
    // most likely this one, made by a try whose answer was lost. The loop compares the owner. A
    // quota is judged before the name, and such a pod may be the one that has filled it: after a
    // refusal the pod counts as well, if it is this job's.
    auto there = client_.get<kube::Pod>({job.metadata.ns, effect.slot.name});
    if (exists || (there.ok() && record_key_of(*there) == outcome.job_uid)) {
      outcome.result = std::move(there);
    }
    return outcome;
  }

  // The UID keeps a pod safe that was made under the same name since.
  Outcome operator()(const DeletePod& effect) const {
    return PodDeleted{effect.uid, effect.job_uid,
                      client_.remove<kube::Pod>(
                          effect.key, {.uid = effect.uid, .grace_period = effect.grace_period})};
  }

  Outcome operator()(const ReadRecorded& effect) const {
    return RecordedRead{client_.get<kube::Lease>(effect.lease)};
  }

  // Reads from etcd, not from a cache that may be as old as the watch that has not shown the pod.
  Outcome operator()(const ReadPod& effect) const {
    return PodRead{effect.key, effect.uid, client_.get<kube::Pod>(effect.key)};
  }

  Outcome operator()(const PinPod& effect) const {
    const kube::Job& job = *effect.job;
    PodPinned outcome{.job_uid = job.metadata.uid,
                      .starts = job.status.starts.value_or(0),
                      .slot = effect.slot,
                      .result = base::Error{}};
    // 1. read it as JSON: pin_patch repeats lists, also fields that we do not know
    const auto pod = client_.call_json(
        kube::Method::kGet, kube::object_path(kube::Pod::kResource, effect.pod), nullptr);
    if (!pod.ok()) {
      outcome.is_gone = pod.error().code == base::Code::kNotFound;
      outcome.result = pod.error();
      return outcome;
    }
    switch (pin_state(*pod, effect.pod_uid, job)) {
      case PinState::kGone:
        outcome.is_gone = true;
        break;
      case PinState::kPinned:
        outcome.result = kube::decode<kube::Pod>(*pod);
        break;
      case PinState::kMayBePinned:
        // 2. under the version that was read, so nothing that its author changed meanwhile is lost
        outcome.result = client_.patch<kube::Pod>(
            effect.pod, pin_patch((*pod)["spec"], job, effect.slot, effect.cpuset),
            {.resource_version = kube::text_at((*pod)["metadata"], "resourceVersion"),
             .uid = effect.pod_uid});
        break;
    }
    return outcome;
  }

  // A gated pod is ended by a deadline and not deleted: its owner decides about the object.
  Outcome operator()(const StopPod& effect) const {
    return PodDeleted{effect.uid, effect.job_uid, stop_pod(client_, effect.key, effect.uid)};
  }

  // The name is the job's, so another job, or a user, may have taken it. Only a service that the
  // job owns counts as made.
  Outcome operator()(const CreateService& effect) const {
    const kube::Service& service = *effect.service;
    auto result = client_.create(service);
    if (!result.ok() && result.error().code == base::Code::kAlreadyExists) {
      result = client_.get<kube::Service>(kube::key_of(service.metadata));
      const auto* owner = result.ok() ? kube::controller_of(result->metadata) : nullptr;
      if (result.ok() && (owner == nullptr || owner->uid != uid_in(effect.job_uid))) {
        result = base::Error{base::Code::kAlreadyExists,
                             "service " + service.metadata.name +
                                 " exists and is not the job's; rename the job "
                                 "or set spec.network to None"};
      }
    }
    return ServiceCreated{effect.job_uid, result.status()};
  }

  // The key is here, and in the Secret, and nowhere else.
  Outcome operator()(const CreateStepSecret& effect) const {
    StepSecretCreated outcome{effect.job_uid, effect.starts, {}};
    std::array<char, kStepKeyBytes> key{};
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
      outcome.status = base::Error{base::Code::kUnavailable, "the system has no random numbers"};
      return outcome;
    }
    const json secret = build_step_secret(effect.job.ns, identity_of(effect, effect.starts),
                                          kube::encode_base64({key.data(), key.size()}));
    const auto result = client_.call_json(kube::Method::kPost,
                                          kube::collection_path(kSecrets, effect.job.ns), &secret);
    // The operator may not read Secrets, so it does not look whose it is: its name is this start's.
    const bool exists = !result.ok() && result.error().code == base::Code::kAlreadyExists;
    if (!exists) outcome.status = result.status();
    // That start's pods are gone, and no pod has its key.
    if (outcome.status.ok() && effect.starts > 1) {
      delete_step_objects(effect.job.ns, identity_of(effect, effect.starts - 1));
    }
    return outcome;
  }

  Outcome operator()(const DeleteStepObjects& effect) const {
    delete_step_objects(effect.job.ns, identity_of(effect, effect.starts));
    return StepObjectsDeleted{};
  }

  // `effect` must live longer than what is returned.
  template <typename T>
  static JobIdentity identity_of(const T& effect, std::int64_t starts) {
    const std::string_view key = effect.job_uid;
    return {effect.job.name, key.substr(0, key.find('/')), starts, task_in(key)};
  }

  // If this fails they stay until the Job goes, which nothing waits for.
  void delete_step_objects(const std::string& ns, const JobIdentity& start) const {
    const auto remove = [&](const kube::ResourceInfo& kind, const std::string& name) {
      (void)client_.call_json(kube::Method::kDelete, kube::object_path(kind, {ns, name}));
    };
    remove(kSecrets, step_secret_name(start));
    if (start.task) remove(kube::Service::kResource, service_name(start, true));
  }

  // Asks the API server to check a pod of the job without storing it (dry run), so that a template
  // which it would refuse is reported while the job still waits, and not when it has nodes.
  Outcome operator()(const TryPod& effect) const {
    PodTried outcome{effect.uid, {}};
    auto object = client_.get<kube::Job>(effect.job);
    // The trial was decided for a Job that may have been deleted and created again under its name.
    if (object.ok() && object->metadata.uid != effect.uid) {
      object = base::Error{base::Code::kNotFound, "another job has that name"};
    }
    if (!object.ok()) {
      outcome.status = object.status();
      return outcome;
    }
    // A start that never was: build_pod needs a partition and a node. This object is a copy:
    // nothing of this status is written.
    object->status.partition = effect.partition;
    object->status.allocation = kube::Allocation{.hostlist = effect.slot.node};
    const auto pod =
        build_pod(*object, effect.slot, gang_layout({&effect.slot, 1}), effect.options, launcher_);
    outcome.status =
        pod.ok() ? client_.create_json<kube::Pod>(effect.job.ns, *pod, {.dry_run = true}).status()
                 : pod.status();
    return outcome;
  }

  // Job numbers are reserved in blocks, before any of them is given to a job: a leader that dies
  // loses the rest of its block, but no number is given twice.
  Outcome operator()(const ReserveIds& effect) const {
    using Config = kube::SchedulerConfig;
    const kube::ObjectKey key{.ns = "", .name = std::string{kube::kSchedulerConfigName}};
    const json patch{{"status", {{"nextJobID", effect.end}}}};
    IdsReserved outcome{effect.first, effect.end, base::Error{}, std::nullopt};
    if (effect.exists) {
      outcome.result =
          // Under the version that the loop knows: if two leaders reserve the same block, one gets
          // a conflict.
          client_.patch_status<Config>(key, patch, {.resource_version = effect.version});
    } else {
      // `spec` must be there, though nothing is in it.
      const json object{{"apiVersion", "kubegang.io/v1alpha1"},
                        {"kind", "SchedulerConfig"},
                        {"metadata", {{"name", kube::kSchedulerConfigName}}},
                        {"spec", json::object()}};
      // An administrator may create the object at the same moment: one of the two gets
      // AlreadyExists, and the loop tries again on what is stored.
      outcome.result = client_.create_json<Config>("", object);
      if (outcome.result.ok()) {
        outcome.result = client_.patch_status<Config>(
            key, patch, {.resource_version = outcome.result->metadata.resource_version});
      }
    }
    // `fresh` shows whether another leader, or this very try, has reserved numbers.
    if (!outcome.result.ok()) {
      if (auto read = client_.get<Config>(key); read.ok()) outcome.fresh = std::move(*read);
    }
    return outcome;
  }

  // Under the version that was read: a taint that an administrator sets at the same moment must not
  // be lost.
  Outcome operator()(const SetTaints& effect) const {
    kube::Node node;
    node.spec.taints = effect.taints;
    json taints = nullptr;  // a merge patch replaces lists as a whole
    if (!effect.taints.empty()) taints = kube::encode(node)["spec"]["taints"];
    return TaintsSet{effect.node, client_.patch<kube::Node>({.ns = "", .name = effect.node},
                                                            {{"spec", {{"taints", taints}}}},
                                                            {.resource_version = effect.version})};
  }

  // A merge patch replaces lists as a whole, so the other conditions are written as they were read,
  // also fields that we do not know, and under that version.
  Outcome operator()(const NotePod& effect) const {
    PodNoted outcome{effect.uid, effect.job_uid, {}};
    const auto pod = client_.call_json(
        kube::Method::kGet, kube::object_path(kube::Pod::kResource, effect.pod), nullptr);
    if (!pod.ok()) {
      outcome.status = pod.status();
      return outcome;
    }
    const json& metadata = (*pod)["metadata"];
    // Another pod by now: nothing is left to note, which counts as success.
    if (kube::text_at(metadata, "uid") != effect.uid) return outcome;
    const json before = kube::object_at(*pod, "status").value("conditions", json::array());
    json conditions = json::array();
    for (const json& condition : before) {
      if (kube::text_at(condition, "type") != effect.type) conditions.push_back(condition);
    }
    if (effect.note) conditions.push_back(encode_note(*effect.note));
    // It is there already, written by a try whose answer was lost.
    if (conditions == before) return outcome;
    outcome.status =
        client_
            .patch_status<kube::Pod>(
                effect.pod, {{"status", {{"conditions", conditions}}}},
                {.resource_version = kube::text_at(metadata, "resourceVersion"), .uid = effect.uid})
            .status();
    return outcome;
  }

  Outcome operator()(const CreateJob& effect) const {
    const kube::Job& job = *effect.job;
    // An answer that was lost is recognized by the owner and by the list of pods. A Job of that
    // name that a user has made is refused as AlreadyExists, and the loop says so.
    const auto owner_uid = [](const kube::Job& of) {
      const kube::OwnerReference* owner = kube::controller_of(of.metadata);
      return owner == nullptr ? std::string{} : owner->uid;
    };
    JobCreated outcome{owner_uid(job), kube::key_of(job.metadata), base::Error{}};
    if (effect.template_of) {
      auto pod_template = read_template(*effect.template_of, outcome.owner_uid);
      if (!pod_template.ok()) {
        outcome.result = pod_template.error();
        return outcome;
      }
      kube::Job whole = job;
      whole.spec.pod_template = std::move(*pod_template);
      outcome.result = client_.create(whole);
    } else {
      outcome.result = client_.create(job);
    }
    if (outcome.result.ok() || outcome.result.error().code != base::Code::kAlreadyExists) {
      return outcome;
    }
    auto there = client_.get<kube::Job>(outcome.key);
    const bool is_as_good = there.ok() && owner_uid(*there) == outcome.owner_uid &&
                            there->spec.adopted == job.spec.adopted;
    if (is_as_good) outcome.result = std::move(there);
    return outcome;
  }

  // Deletes in the background: its pods go by their owner, and the operator does not wait for them.
  // `version` is empty if any version may be deleted.
  Outcome operator()(const DeleteJob& effect) const {
    kube::DeleteOptions options{.uid = effect.uid, .propagation = kube::Propagation::kBackground};
    if (!effect.version.empty()) options.resource_version = effect.version;
    return JobDeleted{effect.key, client_.remove<kube::Job>(effect.key, options)};
  }

  Outcome operator()(const DeleteOrphan& effect) const {
    const OrphanDeleted outcome{effect.pod};
    // Both are asked of the API server and not of a watch: a watch of Jobs that lags behind that of
    // pods must not cost a job its pods.
    const auto pod = client_.get<kube::Pod>(effect.pod);
    const auto key = pod.ok() ? job_to_ask_for(*pod, effect.longest) : std::nullopt;
    if (!key || !is_orphan(*pod, client_.get<kube::Job>(*key))) return outcome;
    if (is_made_by_others(*pod)) {
      (void)stop_pod(client_, effect.pod, pod->metadata.uid);
    } else {
      (void)client_.remove<kube::Pod>(
          effect.pod,
          {.uid = pod->metadata.uid, .grace_period = grace_within(*pod, effect.longest)});
    }
    return outcome;
  }

  // A user waits for the answer.
  Outcome operator()(const MakeForecast& effect) const {
    const sched::ForecastQuestion& question = *effect.question;
    const auto until = std::chrono::steady_clock::now() + kForecastTakes;
    const sched::ForecastBounds bounds{.gives_up = [&] {
      return stop_.stop_requested() || std::chrono::steady_clock::now() >= until;
    }};
    return ForecastMade{.uid = effect.uid,
                        .job = question.request.id,
                        .as_of = question.state.now,
                        .forecast = sched::forecast(question, bounds)};
  }

 private:
  // Creates the object, or patches its spec under the version that the loop knows: the status is
  // not the operator's. Returns the answer and, after any failure, what a read says: also a write
  // without an answer may have taken place.
  template <typename T>
  std::pair<base::Result<T>, base::Result<T>> put(const T& object, bool exists,
                                                  const std::string& version) const {
    const kube::ObjectKey key = kube::key_of(object.metadata);
    base::Result<T> result = exists
                                 ? client_.patch<T>(key, {{"spec", kube::encode(object)["spec"]}},
                                                    {.resource_version = version})
                                 : client_.create(object);
    base::Result<T> fresh = base::Error{};
    if (!result.ok()) fresh = client_.get<T>(key);
    return {std::move(result), std::move(fresh)};
  }

  // Reads the template of a batch Job, if that is still the one of this UID and its template is the
  // one that was judged.
  base::Result<kube::RawJson> read_template(const CreateJob::TemplateOf& of,
                                            const std::string& uid) const {
    if (of.whole) return pod_template_of(**of.whole, of.judged);
    const auto batch = client_.get<kube::BatchJob>(of.batch_job);
    if (!batch.ok()) return batch.error();
    if (batch->metadata.uid != uid) {
      return base::Error{base::Code::kNotFound, "another batch Job has that name"};
    }
    return pod_template_of(*batch, of.judged);
  }

  const kube::Client& client_;
  const PodLauncher& launcher_;
  const std::stop_token& stop_;
};

}  // namespace

WritePoint point_of(const Effect& effect) {
  return std::visit(PointOf{}, effect);
}

Outcome Actuator::carry_out(const Effect& effect, const std::stop_token& stop) const {
  return std::visit(CarryOut{client_, launcher_, stop}, effect);
}

}  // namespace control
