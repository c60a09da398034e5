// Job: a gang job. SOURCE: api.md "Job". The template stays the JSON that came
// (RawJson): informers drop it, and decode_template (kube/api/pod.h) gives its typed view.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/job_usage.h"
#include "base/rare.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"
#include "kube/api/raw_json.h"

namespace kube {

// Whether the job shares its nodes (sbatch --oversubscribe, --exclusive[=user]). kAny: as the
// partition has it.
enum class JobSharing { kAny, kOverSubscribe, kNode, kUser };
constexpr auto names_of(std::type_identity<JobSharing>) {
  return std::to_array<EnumName<JobSharing>>({{JobSharing::kAny, "Any"},
                                              {JobSharing::kOverSubscribe, "OverSubscribe"},
                                              {JobSharing::kNode, "Node"},
                                              {JobSharing::kUser, "User"}});
}

// One pod for each node of the job, which starts its tasks there itself, or one for each task.
enum class PodPolicy { kPerNode, kPerTask };
constexpr auto names_of(std::type_identity<PodPolicy>) {
  return std::to_array<EnumName<PodPolicy>>(
      {{PodPolicy::kPerNode, "PerNode"}, {PodPolicy::kPerTask, "PerTask"}});
}

// Whether the pods get the podDefaults of their partition. Absent: those of a batch script do.
enum class PodDefaultsUse { kUse, kIgnore };
constexpr auto names_of(std::type_identity<PodDefaultsUse>) {
  return std::to_array<EnumName<PodDefaultsUse>>(
      {{PodDefaultsUse::kUse, "Use"}, {PodDefaultsUse::kIgnore, "Ignore"}});
}

// Whether the pods get names of their own, by a headless Service.
enum class JobNetwork { kService, kNone };
constexpr auto names_of(std::type_identity<JobNetwork>) {
  return std::to_array<EnumName<JobNetwork>>(
      {{JobNetwork::kService, "Service"}, {JobNetwork::kNone, "None"}});
}

// Slurm's base states; `Completing` is a condition.
enum class JobState {
  kPending,
  kRunning,
  kSuspended,
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kPreempted,
  kNodeFail,
  kOutOfMemory,
  kDeadline
};
constexpr auto names_of(std::type_identity<JobState>) {
  return std::to_array<EnumName<JobState>>({{JobState::kPending, "Pending"},
                                            {JobState::kRunning, "Running"},
                                            {JobState::kSuspended, "Suspended"},
                                            {JobState::kCompleted, "Completed"},
                                            {JobState::kFailed, "Failed"},
                                            {JobState::kCancelled, "Cancelled"},
                                            {JobState::kTimeout, "Timeout"},
                                            {JobState::kPreempted, "Preempted"},
                                            {JobState::kNodeFail, "NodeFail"},
                                            {JobState::kOutOfMemory, "OutOfMemory"},
                                            {JobState::kDeadline, "Deadline"}});
}
// Completed and everything after it: the job never runs again.
constexpr bool is_final(JobState state) {
  return state != JobState::kPending && state != JobState::kRunning &&
         state != JobState::kSuspended;
}

// How this run of the job ends, decided before its pods are gone. kRequeue: the job waits again
// afterwards; all others are final.
enum class EndingVerdict {
  kRequeue,
  kCancel,
  kTimeout,
  kCompleted,
  kFailed,
  kPreempted,
  kNodeFail,
  kOutOfMemory,
  kDeadline
};
constexpr auto names_of(std::type_identity<EndingVerdict>) {
  return std::to_array<EnumName<EndingVerdict>>({{EndingVerdict::kRequeue, "Requeue"},
                                                 {EndingVerdict::kCancel, "Cancel"},
                                                 {EndingVerdict::kTimeout, "Timeout"},
                                                 {EndingVerdict::kCompleted, "Completed"},
                                                 {EndingVerdict::kFailed, "Failed"},
                                                 {EndingVerdict::kPreempted, "Preempted"},
                                                 {EndingVerdict::kNodeFail, "NodeFail"},
                                                 {EndingVerdict::kOutOfMemory, "OutOfMemory"},
                                                 {EndingVerdict::kDeadline, "Deadline"}});
}

// sbatch --nodes=min-max.
struct JobNodes {
  std::int32_t min = 0;
  std::optional<std::int32_t> max{};  // absent = min

  friend bool operator==(const JobNodes&, const JobNodes&) = default;
};

// Devices of one kind on a node, as sbatch --gres=name:type:count has them.
struct JobDevice {
  std::string name{};  // gpu
  std::string type{};  // a100; "" = any, and of what a job has: none
  std::int32_t count = 0;

  friend bool operator==(const JobDevice&, const JobDevice&) = default;
};

// The size of the job, wherever it runs: sbatch --nodes, --ntasks, --ntasks-per-node,
// --ntasks-per-socket, --ntasks-per-core, --cpus-per-task, --mem-per-cpu, --mem (0: all_memory),
// --gres, --gpus, --gpus-per-task, --cpus-per-gpu, --mem-per-gpu, --ntasks-per-gpu, --overcommit
// and --use-min-nodes.
struct JobResources {
  std::optional<JobNodes> nodes{};
  std::optional<std::int32_t> tasks{};
  std::optional<std::int32_t> tasks_per_node{};
  std::optional<std::int32_t> tasks_per_socket{};
  std::optional<std::int32_t> tasks_per_core{};
  std::optional<std::int32_t> cpus_per_task{};
  std::optional<Bytes> memory_per_cpu{};
  std::optional<Bytes> memory_per_node{};
  std::optional<bool> all_memory{};         // of each node
  std::vector<JobDevice> devices{};         // on each node
  std::vector<JobDevice> devices_of_job{};  // on all nodes together
  std::vector<JobDevice> devices_per_task{};
  std::vector<JobDevice> devices_per_socket{};
  std::optional<std::int32_t> cpus_per_gpu{};
  std::optional<Bytes> memory_per_gpu{};
  std::optional<std::int32_t> tasks_per_gpu{};
  std::map<std::string, std::int32_t> licenses{};  // for the whole job
  std::optional<bool> overcommit{};
  std::optional<bool> use_min_nodes{};

  friend bool operator==(const JobResources&, const JobResources&) = default;
};

// Returns true if the job itself asks for devices, whatever its template does. Tasks for each GPU
// ask for as many GPUs as these need.
inline bool asks_for_devices(const JobResources& resources) {
  return !resources.devices.empty() || !resources.devices_of_job.empty() ||
         !resources.devices_per_task.empty() || !resources.devices_per_socket.empty() ||
         resources.tasks_per_gpu.has_value();
}

// The nodes that the job may run on, and whether it shares them: sbatch --nodelist, --exclude,
// --contiguous, --constraint, --oversubscribe and --exclusive, --mincpus, --sockets-per-node,
// --cores-per-socket, --threads-per-core, --tmp.
struct JobPlacement {
  std::optional<std::string> hostlist{};
  std::optional<std::string> exclude_hostlist{};
  std::optional<bool> contiguous{};
  std::optional<std::string> constraint{};
  std::optional<JobSharing> sharing{};
  std::optional<std::int32_t> min_cpus_per_node{};
  std::optional<std::int32_t> sockets_per_node{};
  std::optional<std::int32_t> cores_per_socket{};
  std::optional<std::int32_t> threads_per_core{};
  std::optional<Bytes> tmp_disk{};  // a filter, never charged

  friend bool operator==(const JobPlacement&, const JobPlacement&) = default;
};

// When the job runs, for how long, and before which others: sbatch --time, --time-min, --begin,
// --deadline, --qos, --account, --priority and --nice.
struct JobSchedule {
  std::optional<base::Duration> time_limit{};
  std::optional<base::Duration> time_min{};
  std::optional<base::Instant> begin_time{};
  std::optional<base::Instant> deadline{};
  std::optional<std::string> qos{};
  std::optional<std::string> account{};    // absent = the namespace's default
  std::optional<std::int64_t> priority{};  // absent = computed
  std::optional<std::int32_t> nice{};

  friend bool operator==(const JobSchedule&, const JobSchedule&) = default;
};

// A condition on another job: sbatch --dependency. kAfterCorr is between two arrays: each task
// waits for the one of its number, as kAfterOk. kSingleton names none: no other job of this
// namespace and batch.name runs, or waits with a lower number.
enum class DependencyType { kAfter, kAfterAny, kAfterOk, kAfterNotOk, kAfterCorr, kSingleton };
constexpr auto names_of(std::type_identity<DependencyType>) {
  return std::to_array<EnumName<DependencyType>>({{DependencyType::kAfter, "After"},
                                                  {DependencyType::kAfterAny, "AfterAny"},
                                                  {DependencyType::kAfterOk, "AfterOK"},
                                                  {DependencyType::kAfterNotOk, "AfterNotOK"},
                                                  {DependencyType::kAfterCorr, "AfterCorr"},
                                                  {DependencyType::kSingleton, "Singleton"}});
}

// Whether all terms must hold, or one is enough.
enum class DependencyMatch { kAll, kAny };
constexpr auto names_of(std::type_identity<DependencyMatch>) {
  return std::to_array<EnumName<DependencyMatch>>(
      {{DependencyMatch::kAll, "All"}, {DependencyMatch::kAny, "Any"}});
}

// The fate of a job whose dependency can never be satisfied.
enum class NeverSatisfied { kWait, kCancel };
constexpr auto names_of(std::type_identity<NeverSatisfied>) {
  return std::to_array<EnumName<NeverSatisfied>>(
      {{NeverSatisfied::kWait, "Wait"}, {NeverSatisfied::kCancel, "Cancel"}});
}

// The other job is named by its number or, in the same namespace, by its name.
struct DependencyTerm {
  DependencyType type = DependencyType::kAfterOk;
  std::optional<std::int64_t> job_id{};
  std::string job_name{};
  std::optional<std::int32_t> task{};     // of that job, which is an array; absent: all of them
  std::optional<base::Duration> delay{};  // with kAfter

  friend bool operator==(const DependencyTerm&, const DependencyTerm&) = default;
};

// Other jobs that the job waits for.
struct JobDependency {
  std::optional<DependencyMatch> match{};              // absent = kAll
  std::optional<NeverSatisfied> if_never_satisfied{};  // absent = the SchedulerConfig's
  std::vector<DependencyTerm> terms{};

  friend bool operator==(const JobDependency&, const JobDependency&) = default;
};

// Met when the pods of `succeeded_indexes` ("0,2-3"; empty: any) have succeeded, or at least
// `succeeded_count` of them.
struct SuccessRule {
  std::string succeeded_indexes{};
  std::optional<std::int32_t> succeeded_count{};

  friend bool operator==(const SuccessRule&, const SuccessRule&) = default;
};

// The job is complete as soon as one rule is met, as with a Job of the batch group.
struct SuccessPolicy {
  std::vector<SuccessRule> rules{};

  friend bool operator==(const SuccessPolicy&, const SuccessPolicy&) = default;
};

// The treatment of the job after a failure and after its end. ttl_after_finished is Kubernetes'
// ttlSecondsAfterFinished as a duration.
struct JobLifecycle {
  std::optional<bool> requeue{};
  std::optional<base::Duration> start_timeout{};
  std::optional<base::Duration> ttl_after_finished{};
  std::optional<SuccessPolicy> success_policy{};  // absent: when all pods have succeeded

  friend bool operator==(const JobLifecycle&, const JobLifecycle&) = default;
};

// sbatch --array: the job is a number of tasks, each with pods, a start and an end of its own. All
// have the same spec.
struct JobArray {
  std::string tasks{};                        // their numbers, "0-15:4,20"
  std::optional<std::int32_t> parallelism{};  // %4: at most 4 run at a time; absent or 0: any

  friend bool operator==(const JobArray&, const JobArray&) = default;
};

// Wishes for these tasks of an array, which replace the wishes for the array. If several entries
// name a task, the last one with a field counts for that field.
struct TaskControl {
  std::string tasks{};  // "3,5-7"
  std::optional<bool> hold{};
  std::optional<bool> suspend{};
  std::optional<bool> cancel{};
  std::optional<std::int64_t> requeue_request{};
  std::optional<std::int64_t> release_request{};
  // Instead of what spec.schedule of the array says.
  std::optional<base::Duration> time_limit{};
  std::optional<std::int64_t> priority{};
  std::optional<std::int32_t> nice{};

  friend bool operator==(const TaskControl&, const TaskControl&) = default;
};

// The wishes of users for a job that exists: scontrol hold and suspend, scancel, and two counters
// in the place of scontrol requeue and release, which are events and not states.
struct JobControl {
  std::optional<bool> hold{};
  std::optional<bool> suspend{};
  std::optional<bool> cancel{};
  std::optional<std::int64_t> requeue_request{};  // raised by one = requeue
  std::optional<std::int64_t> release_request{};  // raised by one = release a system hold
  std::vector<TaskControl> tasks{};               // of an array

  friend bool operator==(const JobControl&, const JobControl&) = default;
};

// A pod that others have made and that is a task of the job.
struct AdoptedPod {
  std::string name{};
  std::string uid{};

  friend bool operator==(const AdoptedPod&, const AdoptedPod&) = default;
};

// A file of a batch script that exists already: sbatch --open-mode. Absent: truncated at the first
// start, appended to after a requeue.
enum class OpenMode { kAppend, kTruncate };
constexpr auto names_of(std::type_identity<OpenMode>) {
  return std::to_array<EnumName<OpenMode>>(
      {{OpenMode::kAppend, "Append"}, {OpenMode::kTruncate, "Truncate"}});
}

// The processes that a signal of a batch script reaches: the shell that runs the script alone
// (sbatch --signal=B:…), or the tasks of its steps.
enum class SignalTarget { kScript, kSteps };
constexpr auto names_of(std::type_identity<SignalTarget>) {
  return std::to_array<EnumName<SignalTarget>>(
      {{SignalTarget::kScript, "Script"}, {SignalTarget::kSteps, "Steps"}});
}

// sbatch --signal: a notice before the time limit.
struct BatchSignal {
  std::string name{};                      // SIGUSR1
  std::optional<base::Duration> before{};  // absent = 60 s
  std::optional<SignalTarget> target{};    // absent = the steps

  friend bool operator==(const BatchSignal&, const BatchSignal&) = default;
};

struct BatchVariable {
  std::string name{};
  std::string value{};

  friend bool operator==(const BatchVariable&, const BatchVariable&) = default;
};

// A batch script as sbatch submits it. It runs once, in the pod of the first node, started by the
// launcher; the other pods wait for srun. Absent texts have Slurm's defaults.
struct JobBatch {
  std::string script{};  // begins with #!
  std::string name{};    // sbatch --job-name; the object's name is made from it
  std::vector<std::string> arguments{};
  std::string output{};  // --output, --error and --input, with their patterns
  std::string error{};
  std::string input{};
  std::optional<OpenMode> open_mode{};
  std::string working_directory{};
  std::vector<BatchVariable> environment{};  // of the script, and so of its steps
  std::string comment{};
  std::optional<BatchSignal> signal{};

  friend bool operator==(const JobBatch&, const JobBatch&) = default;
};

// Absent fields have the operator's defaults, so absent is kept apart from any value.
struct JobSpec {
  std::vector<std::string> partitions{};  // empty = the default partition
  JobResources resources{};
  JobPlacement placement{};
  JobSchedule schedule{};
  std::optional<JobDependency> dependency{};
  JobLifecycle lifecycle{};
  JobControl control{};
  std::optional<PodPolicy> pod_policy{};
  std::optional<JobNetwork> network{};
  std::optional<PodDefaultsUse> pod_defaults{};
  // How many pods must succeed in all: when one has, the next takes its place. Absent: the pods
  // of the gang.
  std::optional<std::int32_t> completions{};
  std::string completed_indexes{};  // "0,2-3": of these pods, those that are not run
  // Sorted by name. If it is not empty, these pods are the job's tasks and it makes none.
  std::vector<AdoptedPod> adopted{};
  std::optional<JobArray> array{};
  // The texts but the name are empty in an informer's cache.
  base::Rare<JobBatch> batch{};
  std::optional<bool> test_only{};  // it is not run: status.forecast says when it would start
  RawJson pod_template{};           // "template": a PodTemplateSpec; empty in an informer's cache

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Returns the fields in which two specs differ, sorted, such as "spec.resources.tasks" (a field of
// a group) or "spec.partitions". The template is not compared, nor is the batch script.
std::vector<std::string> changed_fields(const JobSpec& before, const JobSpec& now);

// The share of the job of each of some nodes.
struct NodeShare {
  std::string hostlist{};
  std::string cores{};                 // core numbers, "0-1"; "" = all
  std::optional<std::int32_t> cpus{};  // charged
  std::optional<std::int32_t> tasks{};
  std::optional<Bytes> memory{};
  std::vector<JobDevice> devices{};

  friend bool operator==(const NodeShare&, const NodeShare&) = default;
};

// All that the job has while it runs or is suspended.
struct Allocation {
  std::string hostlist{};  // of all nodes
  std::int32_t nodes = 0;
  std::int32_t cpus = 0;
  std::vector<NodeShare> shares{};  // nodes with the same share together

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// A time that passes only while the job runs (or is suspended): its value as of an instant.
struct RunTime {
  base::Duration elapsed{};
  base::Instant as_of{};

  friend bool operator==(const RunTime&, const RunTime&) = default;
};

// The nodes that are kept free for the job until their present jobs have gone, because it preempts
// them.
struct JobClaim {
  std::string hostlist{};
  std::string cores{};  // core numbers on each of the nodes; "" = all
  std::optional<base::Instant> since{};
  std::optional<base::Instant> until{};

  friend bool operator==(const JobClaim&, const JobClaim&) = default;
};

struct JobReference {
  std::string ns{};  // "namespace"
  std::string name{};
  std::string uid{};

  friend bool operator==(const JobReference&, const JobReference&) = default;
};
std::string to_string(const JobReference& job);  // "team-a/myload"

// An end that has begun: the pods get their grace time, and the job keeps its nodes until they are
// gone.
struct JobEnding {
  EndingVerdict verdict = EndingVerdict::kCancel;
  std::string reason{};
  std::optional<std::int32_t> exit_code{};
  std::optional<base::Instant> since{};
  std::optional<base::Instant> grace_end{};
  std::optional<JobReference> by{};  // the job that preempts it

  friend bool operator==(const JobEnding&, const JobEnding&) = default;
};

// The result of refused starts: the job does not start before `at`, nor on these nodes before
// `avoid_until`.
struct JobRetry {
  std::optional<base::Instant> at{};
  std::string avoid_nodes{};  // hostlist
  std::optional<base::Instant> avoid_until{};

  friend bool operator==(const JobRetry&, const JobRetry&) = default;
};

// Held by the system (not by its user), with the reason; release_request ends it.
struct JobHeld {
  std::string reason{};

  friend bool operator==(const JobHeld&, const JobHeld&) = default;
};

// The fate of a term. A term that is fulfilled or has failed stays so.
enum class DependencyState { kUnfulfilled, kFulfilled, kFailed };
constexpr auto names_of(std::type_identity<DependencyState>) {
  return std::to_array<EnumName<DependencyState>>({{DependencyState::kUnfulfilled, "Unfulfilled"},
                                                   {DependencyState::kFulfilled, "Fulfilled"},
                                                   {DependencyState::kFailed, "Failed"}});
}

// A term of the dependency as it was accepted. The job that it names may be gone by now.
struct DependencyStatus {
  DependencyType type = DependencyType::kAfterOk;
  std::optional<std::int64_t> job_id{};  // absent: a job of that name does not exist yet
  std::string job_name{};                // as the spec has it
  std::optional<std::int32_t> task{};    // likewise
  std::optional<base::Duration> delay{};
  DependencyState state = DependencyState::kUnfulfilled;
  // For an array that waits by AfterCorr, "8,10-12": the tasks for which the term has failed,
  // independent of the other tasks.
  std::string failed_tasks{};

  friend bool operator==(const DependencyStatus&, const DependencyStatus&) = default;
};

// The requests that have been carried out.
struct JobObserved {
  std::int64_t requeue_request = 0;
  std::int64_t release_request = 0;
  std::optional<base::Duration> time_limit{};  // of the spec, which status.time_limit follows from

  friend bool operator==(const JobObserved&, const JobObserved&) = default;
};

// A task of an array that has started once and not ended: what the status of a job says of a start
// (task_status, array_status.h). Its other fields are the array's.
struct ArrayTask {
  std::int32_t task = 0;
  std::optional<std::int64_t> job_id{};  // SLURM_JOB_ID
  std::optional<JobState> state{};
  std::string reason{};
  std::string message{};
  std::optional<std::int64_t> starts{};
  std::optional<std::int64_t> restarts{};
  std::optional<std::int64_t> node_failures{};
  std::optional<Allocation> allocation{};
  std::string partition{};
  std::optional<base::Instant> submit_time{};    // absent: the array's
  std::optional<base::Instant> eligible_time{};  // likewise
  std::optional<base::Instant> allocated_time{};
  std::optional<base::Instant> start_time{};  // absent: it is not ready
  std::optional<base::Instant> preempt_eligible_time{};
  std::optional<base::Duration> time_limit{};
  std::optional<RunTime> run_time{};
  std::optional<RunTime> suspend_time{};
  base::Rare<JobClaim> claim{};
  base::Rare<JobEnding> ending{};
  std::optional<JobHeld> held{};
  std::optional<JobRetry> retry{};
  std::optional<std::int32_t> exit_code{};
  std::string succeeded_indexes{};
  std::optional<JobObserved> observed{};
  std::string never_frozen{};  // why its pods are never frozen; "" = they may be
  base::Rare<JobUsage> usage{};  // of its last start, while it waits again: TaskEnd

  friend bool operator==(const ArrayTask&, const ArrayTask&) = default;
};

// How a task of an array has ended, for the records (task_end, array_status.h).
struct TaskEnd {
  std::int32_t task = 0;
  std::optional<std::int64_t> job_id{};
  std::optional<JobState> state{};
  std::string reason{};
  std::optional<std::int64_t> restarts{};
  std::optional<Allocation> allocation{};
  std::string partition{};
  std::optional<base::Instant> submit_time{};    // absent: the array's
  std::optional<base::Instant> eligible_time{};  // likewise
  std::optional<base::Instant> start_time{};
  std::optional<base::Instant> end_time{};
  std::optional<base::Duration> time_limit{};
  std::optional<RunTime> run_time{};
  std::optional<RunTime> suspend_time{};
  std::optional<std::int32_t> exit_code{};
  std::optional<JobUsage> usage{};  // of its steps the script alone

  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

// The jobs that would be stopped for it. Those of its namespace are named.
struct ForecastStops {
  std::int32_t suspended = 0;
  std::int32_t requeued = 0;
  std::int32_t cancelled = 0;
  std::vector<std::string> jobs{};

  friend bool operator==(const ForecastStops&, const ForecastStops&) = default;
};

// The answer to spec.testOnly: when and where it would start if nothing else happened.
struct JobForecast {
  std::optional<base::Instant> as_of{};
  std::optional<std::int64_t> job_id{};       // that it would have got
  std::optional<base::Instant> start_time{};  // absent: `message` says why none is known
  std::string partition{};
  std::string hostlist{};
  std::int32_t nodes = 0;
  std::int32_t cpus = 0;
  std::optional<ForecastStops> stops{};  // absent: no job is stopped
  std::string message{};

  friend bool operator==(const JobForecast&, const JobForecast&) = default;
};

// How many tasks of an array are where.
struct ArrayCounts {
  std::int32_t waiting = 0;
  std::int32_t running = 0;  // also suspended ones
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t cancelled = 0;

  friend bool operator==(const ArrayCounts&, const ArrayCounts&) = default;
};

// The fates of the tasks of an array (array_status.h reads and writes it). A task that is not
// named waits for its first start.
struct ArrayStatus {
  std::string summary{};  // "37 of 1000 done, 4 run, 1 failed"
  ArrayCounts counts{};
  std::vector<ArrayTask> tasks{};  // by number
  // "0-37,40" each; or, where that is longer, `outcomes` has all of them, and `failed` the first.
  std::string succeeded{};
  std::string failed{};
  std::string cancelled{};
  std::string outcomes{};  // base64 of two bits for each task
  // With records: those that have ended and are not known to be recorded, as far as there is room.
  std::vector<TaskEnd> ended{};
  // In a stored status: `tasks` and `ended` as one text, where they are long (packed_tasks.h).
  std::string packed{};

  friend bool operator==(const ArrayStatus&, const ArrayStatus&) = default;
};

// Instants are written as MicroTime, so that what the operator restores is what it had.
struct JobStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<JobState> state{};                    // absent: no operator has seen it yet
  std::string reason{};
  std::string message{};
  std::optional<std::int64_t> job_id{};
  std::string user{};  // who has submitted it; its namespace if it does not say so
  std::optional<std::int64_t> priority{};
  std::optional<std::int64_t> term{};
  std::optional<std::int64_t> starts{};    // allocations so far
  std::optional<std::int64_t> restarts{};  // requeues completed
  // Those of them that were for a lost node, since it was last held for that.
  std::optional<std::int64_t> node_failures{};
  std::optional<Allocation> allocation{};
  std::string partition{};  // it was started in; of a job that waits all it may run in: "a,b"
  std::optional<base::Instant> submit_time{};
  std::optional<base::Instant> eligible_time{};
  std::optional<base::Instant> start_time{};
  std::optional<base::Instant> end_time{};
  std::optional<base::Instant> expected_start_time{};  // of a job that waits, as last planned
  std::string planned_nodes{};                         // hostlist; where it is expected to start
  std::optional<base::Instant> preempt_eligible_time{};
  std::optional<base::Duration> time_limit{};  // in force for this run; absent: none
  std::optional<RunTime> run_time{};           // without suspended time
  std::optional<RunTime> suspend_time{};
  base::Rare<JobClaim> claim{};
  base::Rare<JobEnding> ending{};
  std::optional<JobHeld> held{};
  std::optional<JobRetry> retry{};
  std::vector<DependencyStatus> dependency{};  // of the terms of the spec, in their order
  std::optional<std::int32_t> exit_code{};
  std::optional<JobUsage> usage{};  // of the last start, once it has ended
  // "0,2-3": the pods that had succeeded when successPolicy was met; with completions those that
  // have succeeded so far.
  std::string succeeded_indexes{};
  std::string member_indexes{};  // "4,7-8": with completions, the pod at each place of the gang
  base::Rare<JobForecast> forecast{};  // of a job that is not run
  base::Rare<ArrayStatus> array{};
  std::optional<JobObserved> observed{};
  // Accepted and Ready from the first judgement on, Completing from the first start on; Finished,
  // and Complete or Failed, at the end. NeverFrozen and Stalled where they were true once.
  Conditions conditions{};

  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct Job {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "jobs", "Job", true};

  ObjectMeta metadata{};
  JobSpec spec{};
  JobStatus status{};

  friend bool operator==(const Job&, const Job&) = default;
};

template <>
base::Result<Job> decode<Job>(const JsonView& object);
template <>
const KnownFields& known_fields<Job>();
nlohmann::json encode(const Job& job);

}  // namespace kube
