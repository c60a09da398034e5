// The names that the operator gives to things in the API. People and other programs read them:
// they do not change.
#pragma once

#include <cstdint>
#include <string_view>

namespace kube {

inline constexpr std::string_view kComponent = "kubegang-operator";

// Labels of a job's pods and of its Service.
inline constexpr std::string_view kLabelJob = "kubegang.io/job";
inline constexpr std::string_view kLabelJobId = "kubegang.io/job-id";
inline constexpr std::string_view kLabelPartition = "kubegang.io/partition";
inline constexpr std::string_view kLabelTask = "kubegang.io/task";  // index of the pod in its job
inline constexpr std::string_view kLabelArrayTask =
    "kubegang.io/array-task";  // number of the task, of a pod of an array
// The start of the job that the pod belongs to (Job.status.starts).
inline constexpr std::string_view kLabelStart = "kubegang.io/start";

// spec.managedBy of a Job of the batch group that kubegang runs, and its annotations: partitions
// ("a,b"), QOS, nodes ("2" or "2-4"). They are read once.
inline constexpr std::string_view kManagedBy = "kubegang.io/job";
inline constexpr std::string_view kAnnotationPrefix = "kubegang.io/";
inline constexpr std::string_view kAnnotationPartition = "kubegang.io/partition";
inline constexpr std::string_view kAnnotationQos = "kubegang.io/qos";
inline constexpr std::string_view kAnnotationNodes = "kubegang.io/nodes";
// Labels of the Job that was made for it: which attempt it is, from 0, and how many of those before
// it count for backoffLimit.
inline constexpr std::string_view kLabelAttempt = "kubegang.io/attempt";
inline constexpr std::string_view kLabelFailures = "kubegang.io/failures";
// Conditions of such a batch Job: False says why it cannot run; why it waits.
inline constexpr std::string_view kBatchAccepted = "kubegang.io/Accepted";
inline constexpr std::string_view kBatchWaiting = "kubegang.io/Waiting";
// Pods that others create: this scheduling gate keeps a pod from kube-scheduler until its gang has
// nodes. The label names the gang; the annotations give the number of its pods (absent: 1), the
// CPUs that the pod uses, and the time limit.
inline constexpr std::string_view kGangGate = "kubegang.io/gang";
inline constexpr std::string_view kLabelGang = "kubegang.io/job-name";
inline constexpr std::string_view kAnnotationPods = "kubegang.io/pods";
inline constexpr std::string_view kAnnotationCpus = "kubegang.io/cpus";
inline constexpr std::string_view kAnnotationTimeLimit = "kubegang.io/time-limit";
// Label that such a pod gets with its node: the UID of its Job, which is not its controller.
inline constexpr std::string_view kLabelJobUid = "kubegang.io/job-uid";
// Condition of such a pod: why it still has its gate, unless its Job waits in the queue.
inline constexpr std::string_view kPodWaiting = "kubegang.io/Waiting";

// Labels of the operator's and the agents' own pods, as the chart makes them, and the agent's
// container.
inline constexpr std::string_view kLabelName = "app.kubernetes.io/name";
inline constexpr std::string_view kLabelNameValue = "kubegang";
inline constexpr std::string_view kLabelComponent = "app.kubernetes.io/component";
inline constexpr std::string_view kComponentAgent = "agent";
inline constexpr std::string_view kAgentContainer = "agent";

// Label of a Node: lower is used first.
inline constexpr std::string_view kLabelWeight = "kubegang.io/weight";
// Taint of a Node whose partition says taintNodes.
inline constexpr std::string_view kTaintManaged = "kubegang.io/managed";
inline constexpr std::string_view kTaintManagedEffect = "NoSchedule";
// Set by people on a Node whose machine is off for certain: its pods are gone.
inline constexpr std::string_view kTaintOutOfService = "node.kubernetes.io/out-of-service";

// Annotation of a job's pod: the CPUs of its node that the agent binds it to, "0-3,8". Written with
// the pod; no template can set it.
inline constexpr std::string_view kAnnotationCpuSet = "kubegang.io/cpuset";

inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";

// Conditions of a Job.
inline constexpr std::string_view kAccepted = "Accepted";
inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kCompleting = "Completing";
inline constexpr std::string_view kFinished = "Finished";
// A job that has ended has one of the two, like a Job of the batch group.
inline constexpr std::string_view kJobComplete = "Complete";
inline constexpr std::string_view kJobFailed = "Failed";
// The job's pods are left out of the rotation: a webhook gave them what a frozen pod cannot have.
inline constexpr std::string_view kNeverFrozen = "NeverFrozen";

// Condition of the SchedulerConfig: jobs hold more licenses than there are, because an
// administrator has lowered the number.
inline constexpr std::string_view kLicensesExceeded = "LicensesExceeded";

// Condition of a pod whose job is suspended for long, by its user or by jobs of higher priority.
inline constexpr std::string_view kPodSuspended = "kubegang.io/Suspended";

// Reasons of an agent's condition Ready, of a NodeTimetable: everything runs on that node.
inline constexpr std::string_view kAgentKillSwitch = "KillSwitch";
inline constexpr std::string_view kAgentFailedOpen = "FailedOpen";
inline constexpr std::string_view kAgentStopped = "Stopped";  // its last word

// Reasons why a node takes no new jobs, in Partition.status.unusable.
inline constexpr std::string_view kNodeNotReady = "NotReady";
inline constexpr std::string_view kNodeCordoned = "Cordoned";
inline constexpr std::string_view kNodeBeingDeleted = "BeingDeleted";
inline constexpr std::string_view kNodeTainted = "Tainted";
inline constexpr std::string_view kNodeHasOrphans = "PodsOfDeletedJobs";
inline constexpr std::string_view kNodeNoAgent = "NoAgent";
inline constexpr std::string_view kNodeAgentNotReady = "AgentNotReady";
inline constexpr std::string_view kNodeClock = "ClockNotSynchronized";

// Reasons of an ending that undoes a start; a new leader knows by them how to go on.
inline constexpr std::string_view kStartUndone = "StartUndone";
inline constexpr std::string_view kLaunchFailed = "LaunchFailedRequeuedHeld";
// Reason of an ending after which a requeue counts as a failure of a node.
inline constexpr std::string_view kLostMember = "LostMember";

// Job numbers are reserved in blocks, so that one write serves many jobs.
inline constexpr std::int64_t kJobIdBlock = 1000;

}  // namespace kube
