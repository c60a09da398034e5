// Effects: what the operator asks of the API server, as values. The control loop decides on them,
// the Actuator carries them out on another thread, and an Outcome of the same kind comes back
// through the Inbox. An Effect names everything that the write needs and nothing of the operator's
// own; two are equal when they ask for the same.
//
// A new kind of write is an effect, its outcome, a line in each of the two lists below, an overload
// in actuator.cc and an `answered` of the part that asks for it: leaving one out does not compile.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"
#include "api/wellknown.h"
#include "base/result.h"
#include "kube/api/batch_job.h"
#include "kube/api/lease.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/raw_json.h"
#include "kube/api/service.h"
#include "operator/gang/pod_builder.h"
#include "operator/loop/kinds.h"
#include "operator/write/write_point.h"
#include "scheduler/forecast/forecast.h"
#include "translation/pod_slots.h"

namespace control {

// A value that does not change and that copies share.
template <typename T>
class Shared {
 public:
  Shared(T value) : value_{std::make_shared<const T>(std::move(value))} {}  // NOLINT: converts
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || *a.value_ == *b.value_;
  }

 private:
  std::shared_ptr<const T> value_;
};

// --- statuses ---

// The difference of the two statuses, under the UID and the version of `from`.
template <kube::ApiObject T>
struct PatchStatus {
  WritePoint point = WritePoint::kStatus;
  Shared<T> from, to;
  friend bool operator==(const PatchStatus&, const PatchStatus&) = default;
};
template <kube::ApiObject T>
struct StatusPatched {
  kube::ObjectKey key;
  std::string uid;  // of `from`
  base::Result<T> result;
  // After a conflict, or if there is no such object: what is stored; else an error without meaning.
  base::Result<T> fresh;
};

// --- timetables ---

// Writes a timetable's spec, under `version`; with `exists` false it is created.
struct PutTimetable {
  Shared<kube::NodeTimetable> object;
  bool exists = false;
  std::string version{};
  friend bool operator==(const PutTimetable&, const PutTimetable&) = default;
};
struct TimetablePut {
  std::string node;
  kube::NodeTimetableSpec spec;  // as it was asked for
  base::Result<kube::NodeTimetable> result;
  base::Result<kube::NodeTimetable> fresh;  // after a failure, what is stored
};

// Unless it is another by now, or of another version.
struct DeleteTimetable {
  std::string node;
  std::string uid;
  std::string version;
  friend bool operator==(const DeleteTimetable&, const DeleteTimetable&) = default;
};
struct TimetableDeleted {
  std::string node;
  base::Status status;
};

// --- usage ---

// Writes the usage's spec, under `version`; with `exists` false it is created.
struct PutUsage {
  Shared<kube::UsageRecord> object;
  bool exists = false;
  std::string version{};
  friend bool operator==(const PutUsage&, const PutUsage&) = default;
};
struct UsagePut {
  base::Result<kube::UsageRecord> result;
  base::Result<kube::UsageRecord> fresh;  // after a failure, what is stored
};

// --- pods of a start ---

struct ReadTemplate {
  kube::ObjectKey job;
  std::string uid;
  friend bool operator==(const ReadTemplate&, const ReadTemplate&) = default;
};
struct TemplateRead {
  std::string uid;
  base::Result<kube::Job> result;
};

// A pod to create, built when its turn comes: thousands of built pods that wait would fill the
// memory.
struct CreatePod {
  Shared<kube::Job> job;  // with its template, and the allocation of this start
  Shared<GangLayout> gang;
  PodOptions options;
  PodSlot slot;
  friend bool operator==(const CreatePod&, const CreatePod&) = default;
};
struct PodCreated {
  std::string job_uid;
  std::int64_t starts = 0;
  PodSlot slot;
  bool was_built = true;           // false: `result` says why no pod can be made of the template
  base::Result<kube::Pod> result;  // also of a pod that existed under that name
};

struct DeletePod {
  kube::ObjectKey key;
  std::string uid;
  std::string job_uid;
  std::optional<std::chrono::seconds> grace_period{};
  friend bool operator==(const DeletePod&, const DeletePod&) = default;
};
struct PodDeleted {
  std::string uid;
  std::string job_uid;
  base::Status status;
};

// Reads a pod that no watch has shown.
struct ReadPod {
  kube::ObjectKey key;
  std::string uid;
  friend bool operator==(const ReadPod&, const ReadPod&) = default;
};
struct PodRead {
  kube::ObjectKey key;
  std::string uid;  // as it was known
  base::Result<kube::Pod> result;
};

// A pod that others have made and that has our gate gets its node, CPU set, our toleration and
// labels, and loses the gate, in one write. Succeeds if this job has pinned it already.
struct PinPod {
  kube::ObjectKey pod;
  std::string pod_uid;
  Shared<kube::Job> job;  // with the allocation of this start
  PodSlot slot;
  std::string cpuset;  // CPUs that its node's agent binds it to; "" = none
  friend bool operator==(const PinPod&, const PinPod&) = default;
};
struct PodPinned {
  std::string job_uid;
  std::int64_t starts = 0;
  PodSlot slot;
  bool is_gone = false;            // it no longer exists, or others have removed the gate
  base::Result<kube::Pod> result;  // meaningless if it is gone
};

// Makes kubelet end a pod that others have made: it fails with the reason DeadlineExceeded, and its
// object and log stay. The outcome is a PodDeleted.
struct StopPod {
  kube::ObjectKey key;
  std::string uid;
  std::string job_uid;
  friend bool operator==(const StopPod&, const StopPod&) = default;
};

// One of the job's own that exists already is as good; another's is an error.
struct CreateService {
  Shared<kube::Service> service;
  std::string job_uid;
  friend bool operator==(const CreateService&, const CreateService&) = default;
};
struct ServiceCreated {
  std::string job_uid;
  base::Status status;
};

// The Secret by which the pods of one start of a batch script know each other. One that exists was
// made by an earlier try, or by the leader before.
struct CreateStepSecret {
  kube::ObjectKey job;
  std::string job_uid;
  std::int64_t starts = 0;
  friend bool operator==(const CreateStepSecret&, const CreateStepSecret&) = default;
};
struct StepSecretCreated {
  std::string job_uid;
  std::int64_t starts = 0;
  base::Status status;
};

// The Secret of a start whose pods have ended, and, of a task of an array, their Service. One that
// is not deleted goes with the Job, so the outcome says nothing.
struct DeleteStepObjects {
  kube::ObjectKey job;
  std::string job_uid;
  std::int64_t starts = 0;
  friend bool operator==(const DeleteStepObjects&, const DeleteStepObjects&) = default;
};
struct StepObjectsDeleted {};

// --- everything else ---

// A dry run of one pod of a job that waits.
struct TryPod {
  kube::ObjectKey job;
  std::string uid;
  std::string partition;
  PodSlot slot;
  PodOptions options;
  friend bool operator==(const TryPod&, const TryPod&) = default;
};
struct PodTried {
  std::string uid;
  base::Status status;
};

// SchedulerConfig.status.nextJobID = end; the object is made when it does not exist.
struct ReserveIds {
  std::int64_t first = 0, end = 0;  // [first, end)
  bool exists = false;
  std::string version{};
  friend bool operator==(const ReserveIds&, const ReserveIds&) = default;
};
struct IdsReserved {
  std::int64_t first = 0, end = 0;
  base::Result<kube::SchedulerConfig> result;
  std::optional<kube::SchedulerConfig> fresh;  // after a failure, what is stored
};

struct SetTaints {
  std::string node;
  std::vector<kube::Taint> taints;  // all of them
  std::string version;
  friend bool operator==(const SetTaints&, const SetTaints&) = default;
};
struct TaintsSet {
  std::string node;
  base::Result<kube::Node> result;
};

// Sets a condition of kubegang's of a pod to `note`; nullopt removes it. No write if the pod has it
// so already.
struct NotePod {
  kube::ObjectKey pod;
  std::string uid;
  std::string job_uid;  // "" = it is of no Job yet
  std::optional<kube::Condition> note{};
  std::string type{kube::kPodSuspended};
  friend bool operator==(const NotePod&, const NotePod&) = default;
};
struct PodNoted {
  std::string uid;
  std::string job_uid;
  base::Status status;
};

// For a batch Job, or for pods that others have made. Succeeds if there is one already with the
// same controller and the same pods.
struct CreateJob {
  // The batch Job that `job` is for. The operator keeps the judged part of its template: the whole
  // comes from `whole`, or is read when the Job is made, and must be the judged one.
  struct TemplateOf {
    kube::ObjectKey batch_job;
    kube::RawJson judged;
    std::optional<Shared<kube::BatchJob>> whole{};
    friend bool operator==(const TemplateOf&, const TemplateOf&) = default;
  };
  Shared<kube::Job> job;
  std::optional<TemplateOf> template_of{};  // nullopt: the template is in `job`
  friend bool operator==(const CreateJob&, const CreateJob&) = default;
};
struct JobCreated {
  std::string owner_uid;  // of the batch Job; "" = the Job is for pods
  kube::ObjectKey key;
  base::Result<kube::Job> result;
};

struct DeleteJob {
  kube::ObjectKey key;
  std::string uid;
  std::string version{};  // only this one; "" = whatever has become of it
  friend bool operator==(const DeleteJob&, const DeleteJob&) = default;
};
struct JobDeleted {
  kube::ObjectKey key;
  base::Status status;
};

// No write: how far kubegang-records has stored Jobs.
struct ReadRecorded {
  kube::ObjectKey lease;
  friend bool operator==(const ReadRecorded&, const ReadRecorded&) = default;
};
struct RecordedRead {
  base::Result<kube::Lease> lease;
};

// Unless the pod's job exists and has not ended, as the API server says at that moment. A pod that
// others have made is stopped instead.
struct DeleteOrphan {
  kube::ObjectKey pod;
  std::chrono::seconds longest{};  // grace period; one that is under way is shortened to it
  friend bool operator==(const DeleteOrphan&, const DeleteOrphan&) = default;
};
struct OrphanDeleted {
  kube::ObjectKey pod;
};

// No write: another scheduler is asked, which takes seconds if many jobs wait.
struct MakeForecast {
  std::string uid;
  std::shared_ptr<const sched::ForecastQuestion> question;
  friend bool operator==(const MakeForecast&, const MakeForecast&) = default;
};
struct ForecastMade {
  std::string uid;
  sched::JobId job;  // that was asked about
  base::Instant as_of{};
  sched::Forecast forecast;
};

using Effect =
    PolicyKinds::Variant<PatchStatus, PatchStatus<kube::Job>, PatchStatus<kube::BatchJob>,
                         PutTimetable, DeleteTimetable, PutUsage, ReadTemplate, CreatePod,
                         DeletePod, ReadPod, PinPod, StopPod, CreateService, CreateStepSecret,
                         DeleteStepObjects, TryPod, ReserveIds, SetTaints, NotePod, CreateJob,
                         DeleteJob, ReadRecorded, DeleteOrphan, MakeForecast>;

using Outcome =
    PolicyKinds::Variant<StatusPatched, StatusPatched<kube::Job>, StatusPatched<kube::BatchJob>,
                         TimetablePut, TimetableDeleted, UsagePut, TemplateRead, PodCreated,
                         PodDeleted, PodRead, PodPinned, ServiceCreated, StepSecretCreated,
                         StepObjectsDeleted, PodTried, IdsReserved, TaintsSet, PodNoted, JobCreated,
                         JobDeleted, RecordedRead, OrphanDeleted, ForecastMade>;

WritePoint point_of(const Effect& effect);

// Returns true if the API server has judged what was asked for and will not take it as it is,
// however often it is tried. Any other failure says nothing about that.
constexpr bool is_refusal(base::Code code) {
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

// The same of a kubegang Job that is made for a workload of another kind, whose author the sentence
// helps: a quota, an admission policy, a size above what the API server takes, a name that another
// Job has.
constexpr bool is_refusal_of_job(base::Code code) {
  return is_refusal(code) || code == base::Code::kAlreadyExists;
}

}  // namespace control
