// Each kind comes back as it was, and says what is wrong with a wrong one.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/account.h"
#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"
#include "kube/api/event.h"
#include "kube/api/lease.h"
#include "kube/api/namespace.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/service.h"

namespace kube {
namespace {

using nlohmann::json;

// Goal: no field is lost or changes its spelling. Method: a document with every field that we know
// decodes and encodes to the same JSON.
template <typename T>
void expect_round_trip(const json& document) {
  const auto object = decode<T>(document);
  ASSERT_TRUE(object.ok()) << object.error().message;
  EXPECT_EQ(encode(*object), document) << encode(*object).dump(1);
  const auto again = decode<T>(encode(*object));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *object);
}

// Returns the whole sentence that a user would see.
template <typename T>
std::string error_of(const json& document) {
  const auto object = decode<T>(document);
  return object.ok() ? "(none)" : object.error().message;
}

// A spec with every field. The status repeats it as `accepted`, so it is a constant.
const json kPartitionSpec = json::parse(R"({
  "nodes": {"hostlist": "n[12-16]"}, "default": true, "state": "Up", "priorityTier": 1,
  "overSubscribe": {"policy": "Force", "maxShare": 4},
  "exclusiveUser": false, "preemptMode": "Suspend", "preemptPriority": true, "graceTime": "0s",
  "overTimeLimit": "1m",
  "memory": {"defaultPerCPU": "1Gi", "maxPerCPU": "4Gi"},
  "limits": {"minNodes": 1, "maxNodes": 5, "defaultTime": "1h", "maxTime": "24h",
             "maxCPUsPerNode": 8},
  "leastLoaded": false, "qos": "high", "allow": {"namespaces": ["team-a"], "qos": []},
  "deny": {"qos": ["low"]}, "taintNodes": false})");

// Here and in the tests below: a field that the encoder forgets is deleted by the next replacement
// of the object, and one that the decoder forgets is ignored although the user has set it. The
// first document has all of metadata, too.
TEST(Partition, ComesBackAsItWas) {
  expect_round_trip<Partition>({
      {"apiVersion", "kubegang.io/v1alpha1"},
      {"kind", "Partition"},
      {"metadata",
       {{"name", "batch"},
        {"uid", "u-1"},
        {"resourceVersion", "41"},
        {"generation", 2},
        {"labels", {{"a", "b"}}},
        {"annotations", {{"c", "d"}}},
        {"creationTimestamp", "2026-01-01T00:00:00Z"},
        {"ownerReferences",
         {{{"apiVersion", "v1"},
           {"kind", "Node"},
           {"name", "n1"},
           {"uid", "u-2"},
           // An owner with each of its fields; which kind it is does not matter here.
           {"controller", true},
           {"blockOwnerDeletion", true}}}}}},
      {"spec", kPartitionSpec},
      {"status",
       {{"accepted", kPartitionSpec},
        {"preemptMode", "Suspend"},
        {"nodes", 5},
        {"cpus", 40},
        {"jobs", {{"pending", 0}, {"running", 2}, {"suspended", 1}}},
        {"conditions",
         {{{"type", "Accepted"},
           {"status", "True"},
           {"reason", "Legal"},
           {"message", ""},
           {"observedGeneration", 2},
           {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}}}},
  });
}

// The other way to name nodes: a selector in place of a host list.
TEST(Partition, SelectorComesBackAsItWas) {
  expect_round_trip<Partition>(json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "Partition", "metadata": {"name": "gpu"},
    "spec": {"nodes": {"selector": {"matchLabels": {"pool": "gpu"}, "matchExpressions": [
      {"key": "zone", "operator": "In", "values": ["a", "b"]}]}}}})"));
}

// These sentences are seen by users in conditions and logs, so they are compared as a whole.
TEST(Partition, ErrorNamesObjectFieldAndValue) {
  const auto with = [](const char* spec) {
    return json{{"metadata", {{"name", "batch"}}}, {"spec", json::parse(spec)}};
  };
  EXPECT_EQ(error_of<Partition>(with(R"({"overSubscribe": {"maxShare": "four"}})")),
            "Partition batch: spec.overSubscribe.maxShare: want an integer, got \"four\"");
  EXPECT_EQ(error_of<Partition>(with(R"({"overSubscribe": {"policy": "Always"}})")),
            "Partition batch: spec.overSubscribe.policy: want one of Never, OnRequest, Force, "
            "Exclusive, got \"Always\"");
  EXPECT_EQ(error_of<Partition>(with(R"({"graceTime": "soon"})")),
            "Partition batch: spec.graceTime: invalid duration \"soon\" (examples: 30s, "
            "1h30m, 100ms)");
  EXPECT_EQ(error_of<Partition>(with(R"({"allow": {"namespaces": ["a", 1]}})")),
            "Partition batch: spec.allow.namespaces[1]: want a string, got 1");
  EXPECT_EQ(error_of<Partition>(with(R"({"priorityTier": 4294967296})")),
            "Partition batch: spec.priorityTier: want an integer from -2147483648 to 2147483647, "
            "got 4294967296");
  // An object of another kind, and JSON that is not an object at all.
  EXPECT_EQ(error_of<Partition>(json{{"kind", "Job"}}),
            "Partition without a name: kind is \"Job\"");
  EXPECT_EQ(error_of<Partition>(json::array()), "Partition without a name: want an object, got []");
}

// A field of a newer version must not make an object unreadable; null and an empty name mean
// "none".
TEST(Decode, IgnoresUnknownFieldsAndTreatsNullAndEmptyNamesAsAbsent) {
  const auto partition = decode<Partition>(json::parse(
      R"({"metadata": {"name": "batch", "managedFields": []},
          "spec": {"later": 1, "qos": "", "state": null}})"));
  ASSERT_TRUE(partition.ok()) << partition.error().message;
  Partition want;
  want.metadata.name = "batch";
  EXPECT_EQ(*partition, want);
}

// Returns every field of a Job once. Times have microseconds where the API has them, and whole
// seconds where Kubernetes' own types are used (conditions).
json full_job() {
  return json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "Job",
    "metadata": {"name": "myload", "namespace": "team-a"},
    "spec": {
      "partitions": ["batch"],
      "resources": {
        "nodes": {"min": 3, "max": 4}, "tasks": 6, "tasksPerNode": 2, "tasksPerSocket": 2,
        "tasksPerCore": 1, "cpusPerTask": 1, "memoryPerCPU": "512Mi", "memoryPerNode": "1Gi",
        "allMemory": false,
        "devices": [{"name": "gpu", "type": "a100", "count": 2}], "licenses": {"matlab": 2},
        "overcommit": false,
        "useMinNodes": true},
      "placement": {
        "hostlist": "n12", "excludeHostlist": "n13", "contiguous": true, "constraint": "gpu&fast",
        "sharing": "OverSubscribe", "minCPUsPerNode": 4, "socketsPerNode": 2, "coresPerSocket": 4,
        "threadsPerCore": 1, "tmpDisk": "1Gi"},
      "schedule": {
        "timeLimit": "5m", "timeMin": "1m", "beginTime": "2026-01-01T00:00:00.000000Z",
        "deadline": "2026-01-02T00:00:00.000000Z", "qos": "normal", "priority": 100, "nice": -5},
      "lifecycle": {"requeue": true, "startTimeout": "10m", "ttlAfterFinished": "24h",
                    "successPolicy": {"rules": [{"succeededIndexes": "0,2-3",
                                                 "succeededCount": 2}]}},
      "control": {"hold": false, "suspend": false, "cancel": false, "requeueRequest": 0,
                  "releaseRequest": 0},
      "podPolicy": "PerNode", "network": "Service", "completions": 6, "completedIndexes": "0-1",
      "template": {"spec": {"containers": [
        {"name": "main", "image": "busybox", "command": ["sleep", "300"]}]}}},
    "status": {
      "state": "Suspended", "reason": "Timeslice", "message": "waits", "jobID": 42,
      "priority": 4294901759, "term": 3, "starts": 1, "restarts": 3, "nodeFailures": 1,
      "allocation": {"hostlist": "n[12-14]", "nodes": 3, "cpus": 6,
                     "shares": [{"hostlist": "n[12-14]", "cores": "0-1", "cpus": 2, "tasks": 2,
                                 "memory": "1Gi",
                                 "devices": [{"name": "gpu", "type": "a100", "count": 2}]}]},
      "partition": "batch",
      "submitTime": "2026-01-01T00:00:00.000001Z", "eligibleTime": "2026-01-01T00:00:00.000001Z",
      "startTime": "2026-01-01T00:00:01.000000Z", "endTime": "2026-01-01T00:10:00.000000Z",
      "expectedStartTime": "2026-01-01T00:00:02.000000Z", "plannedNodes": "n[1-2]",
      "preemptEligibleTime": "2026-01-01T00:00:03.000000Z",
      "runTime": {"elapsed": "41s", "asOf": "2026-01-01T00:00:00.000000Z"},
      "suspendTime": {"elapsed": "250ms", "asOf": "2026-01-01T00:00:00.000000Z"},
      "claim": {"hostlist": "n15", "cores": "0-1", "since": "2026-01-01T00:00:00.000000Z",
                "until": "2026-01-01T00:01:00.000000Z"},
      "ending": {"verdict": "Requeue", "reason": "Preempted", "exitCode": 0,
      "by": {"namespace": "team-b", "name": "x", "uid": "u-9"},
                 "since": "2026-01-01T00:00:00.000000Z",
                 "graceEnd": "2026-01-01T00:00:30.000000Z"},
      "held": {"reason": "JobHeldAdmin"},
      "retry": {"at": "2026-01-01T00:00:09.000000Z", "avoidNodes": "n[1-2]",
                "avoidUntil": "2026-01-01T00:00:20.000000Z"},
      "exitCode": 0, "succeededIndexes": "0,2",
      "memberIndexes": "3,5",
      "observed": {"requeueRequest": 0, "releaseRequest": 0, "timeLimit": "5m"},
      "conditions": [{"type": "Ready", "status": "False", "reason": "Starting",
                      "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})");
}

// Every field of spec and status, the pod template included.
TEST(Job, ComesBackAsItWas) {
  expect_round_trip<Job>(full_job());
}

// The API server refuses it, but what the operator has read must be what it writes.
TEST(Job, AnEmptyTemplateComesBackAsItWas) {
  json document{{"apiVersion", "kubegang.io/v1alpha1"}, {"kind", "Job"}};
  document["metadata"]["name"] = "one";
  document["spec"]["template"] = json::object();
  expect_round_trip<Job>(document);
}

// The informers drop it to save memory; an encoded object must then not have an empty one.
TEST(Job, TemplateHasATypedViewAndCanBeDropped) {
  auto job = decode<Job>(full_job());
  ASSERT_TRUE(job.ok());
  const auto view = decode_template(job->spec.pod_template);
  ASSERT_TRUE(view.ok()) << view.error().message;
  ASSERT_EQ(view->spec.containers.size(), 1U);
  EXPECT_EQ(view->spec.containers[0].command, (std::vector<std::string>{"sleep", "300"}));
  job->spec.pod_template = {};
  EXPECT_FALSE(encode(*job)["spec"].contains("template"));
}

// The path begins at the object that the user wrote, not at the template.
TEST(DecodeTemplate, NamesTheField) {
  EXPECT_EQ(decode_template(RawJson{}).error().message, "spec.template: want an object, got null");
  const RawJson bad{json::parse(R"({"spec": {"containers": [{"name": 1}]}})")};
  EXPECT_EQ(decode_template(bad).error().message,
            "spec.template.spec.containers[0].name: want a string, got 1");
}

// YAML without quotes makes a number of `memoryPerNode: 2097152`: bytes, as in Kubernetes.
TEST(Job, MemoryMayBeABareNumber) {
  const auto job = decode<Job>(
      json{{"spec", {{"resources", {{"memoryPerNode", 2097152}, {"memoryPerCPU", 1048576}}}}}});
  ASSERT_TRUE(job.ok()) << job.error().message;
  // 2097152 is 2 MiB.
  EXPECT_EQ(job->spec.resources.memory_per_node, Bytes{2 << 20U});
  EXPECT_EQ(job->spec.resources.memory_per_cpu, Bytes{1 << 20U});
}

// The kind is QOS in the API; a limit of 0 (accounts' jobs) is kept and differs from an absent one.
TEST(Qos, ComesBackAsItWas) {
  expect_round_trip<Qos>(json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "QOS", "metadata": {"name": "high"},
    "spec": {"priority": 100, "preempt": ["normal"], "preemptMode": "Requeue",
             "preemptWithin": true, "preemptPriority": false, "preemptExemptTime": "0s",
             "graceTime": "10s", "flags": ["DenyOnLimit", "OverPartQOS"],
             "limits": {"group": {"resources": {"cpus": 8, "memory": "1Gi", "nodes": 2,
                                                "billing": 9},
                                  "jobs": 3, "submittedJobs": 4, "runTime": "100h"},
                        "perJob": {"resources": {"nodes": 3}, "resourcesPerNode": {"cpus": 5},
                                   "time": "1h"},
                        "minPerJob": {"cpus": 2},
                        "perNamespace": {"resources": {"cpus": 6}, "jobs": 1, "submittedJobs": 2},
                        "perAccount": {"resources": {"cpus": 7}, "jobs": 0, "submittedJobs": 3}},
             "usageFactorPercent": 150},
    "status": {"preemptMode": "Requeue", "running": 0, "pending": 0,
    "accepted": {"priority": 100}}})"));
}

// Limits of the account and of one of its namespaces, each with its own groups of fields.
TEST(Account, ComesBackAsItWas) {
  expect_round_trip<Account>(json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "Account", "metadata": {"name": "physics"},
    "spec": {"parent": "science", "shares": 3, "sharesOfParent": false, "priority": 7,
             "limits": {"group": {"jobs": 3}, "perJob": {"time": "1h"},
                        "perNamespace": {"jobs": 1, "submittedJobs": 2}},
             "namespaces": [{"name": "team-a", "default": true, "shares": 2,
                             "sharesOfAccount": false, "priority": 1,
                             "limits": {"group": {"submittedJobs": 5}}}]},
    "status": {"observedGeneration": 1, "accepted": {"shares": 1}}})"));
}

// All parameters of Slurm that have a field here. Many of them are off, and off must not come back
// as absent: an absent one takes the default.
TEST(SchedulerConfig, ComesBackAsItWas) {
  expect_round_trip<SchedulerConfig>(json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "SchedulerConfig",
    "metadata": {"name": "default"},
    "spec": {
      "select": {"type": "ConsTres", "unit": "Core", "memory": true, "taskAffinity": true},
      "schedulerType": "Backfill",
      "backfill": {"interval": "30s", "window": "24h", "resolution": "1m", "windowLinear": "1m",
                   "maxJobTest": 500, "maxJobStart": 6, "maxJobPart": 1, "maxJobUser": 2,
                   "maxJobUserPart": 3, "minAgeReserve": "10m", "minPrioReserve": 4294967295,
                   "jobPartCountReserve": 4, "maxJobArrayResv": 6, "nodeSpaceSize": 5,
                   "continue": true, "busyNodes": true, "oneResvPerJob": true,
                   "runningJobReserve": true, "licenses": true},
      "preemptType": "PartitionPriority", "preemptMode": "Suspend", "gang": true,
      "preemptWithin": false, "preemptPriority": false,
      "preemptExemptTime": "0s",
      "preemptParameters": {"reorderCount": 1, "strictOrder": false, "youngestFirst": false,
                            "minExemptPriority": 7, "reclaimLicenses": true},
      "placementPolicy": "Compat", "timeSlice": "30s", "killWait": "30s",
      "completeWait": "9s", "startTimeout": "30m",
      "requeue": {"default": true, "delay": "2m", "maxBatch": 5}, "maxArraySize": 1001,
      "overTimeLimit": "0s",
      "enforcePartitionLimits": "None",
      "memory": {"defaultPerCPU": "1Gi", "maxPerCPU": "4Gi"}, "licenses": {"matlab": 4},
      "devices": {"resources": [{"resource": "example.com/fpga", "name": "fpga", "type": "u250"}],
                  "types": [{"product": "Tesla-T4", "type": "t4"}]},
      "runtimeClasses": ["nvidia"],
      "nodeReserve": {"memoryPercent": 5},
      "timetable": {"lead": "3s", "settle": "2s", "barrier": "20ms", "failOpenAfter": "15m",
                    "clock": "Warn"},
      "priority": {"type": "Multifactor",
                   "weights": {"age": 1, "account": 2, "fairShare": 3, "jobSize": 4, "partition": 5,
                               "qos": 6, "cpus": 7, "memory": 8, "nodes": 9},
                   "maxAge": "168h", "favorSmall": true, "fairShare": "Classic",
                   "dampeningFactor": 2, "usageDecay": "HalfLife", "decayHalfLife": "30s",
                   "usageResetPeriod": "Weekly", "calcPeriod": "5m",
                   "flags": ["AccrueAlways", "MaxTRES"]}},
    "status": {"observedGeneration": 1, "preemptMode": "Cancel", "nextJobID": 2000,
    "accepted": {"gang": true}}})"));
}

// The usage of a whole cluster; a field that is lost here would forgive users what they have used
// when the next operator reads it.
TEST(UsageRecord, ComesBackAsItWas) {
  expect_round_trip<UsageRecord>(json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "UsageRecord", "metadata": {"name": "default"},
    "spec": {"asOf": "2026-01-01T00:00:00.000001Z", "takenAt": "2026-01-01T00:00:02.000000Z",
             "namespaces": [{"account": "a", "namespace": "team-a", "billed": 7000,
                             "runTimeMillis": 3000}],
             "qos": [{"name": "q", "billed": 7000, "runTimeMillis": 3000}],
             "jobs": "42:300,43:0"}})"));
}

// Beyond the round trip: the indexes of plan and cycle refer to the list of pods, and
// 2026-01-01T00:00:30Z is 1,767,225,630 s after the epoch.
TEST(NodeTimetable, ComesBackAsItWas) {
  const json document = json::parse(R"({
    "apiVersion": "kubegang.io/v1alpha1", "kind": "NodeTimetable", "metadata": {"name": "n12"},
    "spec": {
      "term": 3, "revision": 17, "slice": "30s", "asOf": "2026-01-01T00:00:00.000000Z",
      "pods": [{"namespace": "team-a", "name": "myload-x7k2p-0", "jobUID": "u", "row": "Active",
                "ran": "41.5s"},
               {"namespace": "team-a", "name": "b-0", "jobUID": "v", "row": "Filler",
                "ran": "0s"}],
      "plan": [{"until": "2026-01-01T00:00:30.000000Z", "run": [0]}],
      "cycle": [[1], [0, 1], []]},
    "status": {
      "observedRevision": 17, "clockErrorMicros": 120, "agentVersion": "0.1.0",
      "topology": {"sockets": 2, "coresPerSocket": 4, "threadsPerCore": 1, "cpuIDs": "0-7"},
      "stuck": [{"namespace": "a", "name": "b"}], "exempt": [{"namespace": "a", "name": "c"}],
      "foreign": [{"namespace": "a", "name": "d"}]}})");
  expect_round_trip<NodeTimetable>(document);
  const auto object = decode<NodeTimetable>(document);
  const timetable::Timetable want{.slice = std::chrono::seconds{30},
                                  .pods_count = 2,
                                  .plan = {{base::instant_from_micros(1'767'225'630'000'000), {0}}},
                                  .cycle = {{1}, {0, 1}, {}}};
  EXPECT_EQ(object->spec.timetable, want);
  EXPECT_EQ(object->spec.pods[0].ran, std::chrono::milliseconds{41'500});
}

// Indexes are unsigned numbers of 16 bits; a negative one must not become a large one.
TEST(NodeTimetable, IndexThatFitsNoListIsAnError) {
  EXPECT_EQ(error_of<NodeTimetable>(
                json::parse(R"({"metadata": {"name": "n12"}, "spec": {"cycle": [[0], [-1]]}})")),
            "NodeTimetable n12: spec.cycle[1][0]: want an integer from 0 to 65535, got -1");
}

// Parts that are kept as JSON (probes, affinity, gates) come back as they were, too; a sidecar is
// an init container with restartPolicy Always.
TEST(Pod, ComesBackAsItWas) {
  expect_round_trip<Pod>(json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p-0", "namespace": "team-a", "uid": "u",
                 "deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30},
    "spec": {
      "nodeName": "n12", "restartPolicy": "Never", "terminationGracePeriodSeconds": 30,
      "activeDeadlineSeconds": 100, "hostname": "p-0", "subdomain": "p", "hostNetwork": true,
      "hostPID": true, "hostIPC": true, "schedulerName": "default-scheduler",
      "priorityClassName": "low", "runtimeClassName": "gvisor", "serviceAccountName": "default",
      "nodeSelector": {"a": "b"}, "overhead": {"cpu": "250m", "memory": "64Mi"},
      "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
      "affinity": {"nodeAffinity": {}}, "topologySpreadConstraints": [{"maxSkew": 1}],
      "schedulingGates": [{"name": "g"}],
      "resources": {"requests": {"cpu": "3"}, "limits": {"memory": "1Gi"}},
      "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
      "initContainers": [{"name": "init", "image": "i", "restartPolicy": "Always"}],
      "containers": [{
        "name": "main", "image": "busybox", "command": ["sleep"], "args": ["300"],
        "workingDir": "/tmp",
        "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}],
        "env": [{"name": "A", "value": "1"},
                {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"},
                      "limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
        "livenessProbe": {"exec": {"command": ["true"]}}, "readinessProbe": {"periodSeconds": 1},
        "startupProbe": {"periodSeconds": 2},
        "lifecycle": {"postStart": {"exec": {"command": ["true"]}},
                      "preStop": {"httpGet": {"port": 80}}}}]},
    "status": {
      "phase": "Running", "reason": "R", "message": "m", "qosClass": "Burstable",
      "startTime": "2026-01-01T00:00:00Z", "podIP": "10.0.0.1", "hostIP": "10.0.0.2",
      "conditions": [{"type": "Ready", "status": "Unknown", "reason": "", "message": ""}],
      "initContainerStatuses": [{
        "name": "init", "ready": true, "started": false, "restartCount": 0, "image": "i",
        "imageID": "", "containerID": "c://1",
        "state": {"terminated": {"exitCode": 0, "reason": "Completed",
                                 "startedAt": "2026-01-01T00:00:00Z",
                                 "finishedAt": "2026-01-01T00:00:01Z"}}}],
      "containerStatuses": [{
        "name": "main", "ready": true, "restartCount": 1, "image": "busybox", "imageID": "x",
        "state": {"running": {"startedAt": "2026-01-01T00:00:02Z"}},
        "lastState": {"terminated": {"exitCode": 137, "signal": 9, "message": "killed",
                                     "containerID": "c://0"}}},
        {"name": "late", "ready": false, "restartCount": 0, "image": "", "imageID": "",
         "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}})"));
}

// All that is read of a node: what it has, which pods it takes, and whether it reports.
TEST(Node, ComesBackAsItWas) {
  expect_round_trip<Node>(json::parse(R"({
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "n12", "labels": {"pool": "batch"}},
    "spec": {"unschedulable": true, "taints": [
      {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
    "status": {
      "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
      "allocatable": {"cpu": "7910m", "memory": "15Gi", "pods": "110"},
      "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                      "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                      "lastTransitionTime": "2026-01-01T00:00:00Z"}],
      "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
      "nodeInfo": {"machineID": "m", "bootID": "b", "kernelVersion": "6", "osImage": "Debian",
                   "containerRuntimeVersion": "c", "kubeletVersion": "v1.34",
                   "operatingSystem": "linux", "architecture": "amd64"}}})"));
}

// Times of leases have microseconds, unlike those of most objects; cut to seconds, two renewals
// within one could not be told apart.
TEST(Lease, ComesBackAsItWas) {
  expect_round_trip<Lease>(json::parse(R"({
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "kubegang-operator", "namespace": "kubegang-system"},
    "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
             "acquireTime": "2026-01-01T00:00:00.000000Z",
             "renewTime": "2026-01-01T00:00:10.000001Z"}})"));
}

// Times in whole seconds, as the old API of events has them.
TEST(Event, ComesBackAsItWas) {
  expect_round_trip<Event>(json::parse(R"({
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "team-a"},
    "involvedObject": {"apiVersion": "kubegang.io/v1alpha1", "kind": "Job", "name": "myload",
                       "namespace": "team-a", "uid": "u", "resourceVersion": "7"},
    "type": "Normal", "reason": "Started", "message": "on n[12-14]", "count": 2,
    "source": {"component": "kubegang-operator", "host": "n1"},
    "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01Z"})"));
}

// The service of a gang: no address of its own, and names for pods that are not ready, so that they
// can find each other while they start.
TEST(Service, ComesBackAsItWas) {
  expect_round_trip<Service>(json::parse(R"({
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "myload", "namespace": "team-a"},
    "spec": {"clusterIP": "None", "selector": {"kubegang.io/job": "myload"},
             "ports": [{"name": "p", "protocol": "TCP", "port": 80}],
             "publishNotReadyAddresses": true}})"));
}

// The phase is all that is read of one.
TEST(Namespace, ComesBackAsItWas) {
  expect_round_trip<Namespace>(json::parse(R"({
    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"},
    "status": {"phase": "Active"}})"));
}

// An event refers to its object without the version: the reference is to the object as long as it
// lives, and not to one state of it.
TEST(ReferenceTo, NamesTheObject) {
  Partition partition;
  partition.metadata.name = "batch";
  partition.metadata.uid = "u";
  EXPECT_EQ(reference_to(partition), (ObjectReference{.api_version = "kubegang.io/v1alpha1",
                                                      .kind = "Partition",
                                                      .ns = "",
                                                      .name = "batch",
                                                      .uid = "u",
                                                      .resource_version = ""}));
}

}  // namespace
}  // namespace kube
