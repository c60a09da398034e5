// Goal: the fields that are kept of an object are few and small, whatever its author has written,
// and they say the same as the whole object.
#include "operator/loop/kept_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"
#include "operator/gang/image_volume.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/pod_index.h"
#include "operator/nodes/agent_pods.h"
#include "translation/batch_job_translation.h"
#include "translation/freeze_hazards.h"
#include "translation/node_translation.h"
#include "translation/pod_gang_translation.h"

namespace control {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = PodGangVerdict::Kind;

// Objects of these sizes are larger than the 1.5 MB that the API server takes, so each bound is far
// exceeded.
constexpr int kEntries = 3'000;
constexpr int kContainers = 1'000;
constexpr std::size_t kMega = std::size_t{1} << 20U;
const std::string kLong(kMega / 2, 'x');
const std::string kValue(63, 'x');

// All with kubegang's own prefix: these labels of a node are kept first.
kube::Labels labels() {
  kube::Labels all;
  for (int i = 0; i < kEntries; ++i) all["kubegang.io/" + std::to_string(i)] = kValue;
  return all;
}

// Metadata as an author could write it to use up the operator's memory: each part alone is too
// large.
void fill(kube::ObjectMeta& metadata) {
  metadata = {.name = "huge", .generate_name = kLong, .ns = "team-a", .uid = "u"};
  metadata.resource_version = "7";
  metadata.labels = labels();
  metadata.annotations = {{"example.com/long", kLong}, {"kubegang.io/other", kLong}};
  for (int i = 0; i < kEntries; ++i) {
    metadata.owner_references.push_back({.api_version = "v1", .kind = "ConfigMap", .name = kValue});
  }
}

// Returns a container that requests 1 KiB of memory, and a resource of its own name, so that names
// add up, too.
kube::Container container(const std::string& name) {
  kube::Container one{.name = name, .image = kValue, .command = {kValue}, .args = {kValue}};
  one.env = {{.name = "A", .value = kValue}};
  one.resources.requests["memory"] = kube::Quantity::from_units(1024);
  one.resources.requests["example.com/" + name] = kube::Quantity::from_units(1);
  return one;
}

// Running since hour 1. The state before and the image are of no use to the operator and must
// go.
kube::ContainerStatus running(const std::string& name) {
  kube::ContainerStatus status{.name = name, .image = kValue, .image_id = kValue};
  status.state.running = kube::ContainerRunning{base::Instant{std::chrono::hours{1}}};
  status.last_state.terminated = kube::ContainerTerminated{.message = kValue};
  return status;
}

// Returns a pod on n1 that is as large as it can be, of no job and without a gate.
kube::Pod hostile_pod(int containers) {
  kube::Pod pod;
  fill(pod.metadata);
  pod.spec.node_name = "n1";
  pod.spec.node_selector = labels();
  pod.spec.tolerations.resize(kEntries);
  pod.spec.affinity = kube::RawJson{json{{"x", kLong}}};
  pod.spec.scheduler_name = kLong;
  for (int i = 0; i < containers; ++i) {
    pod.spec.containers.push_back(container("c" + std::to_string(i)));
    pod.spec.init_containers.push_back(container("i" + std::to_string(i)));
    pod.status.container_statuses.push_back(running("c" + std::to_string(i)));
  }
  for (int i = 0; i < kEntries; ++i) {
    pod.status.conditions.push_back({.type = "example.com/" + std::to_string(i)});
  }
  pod.status.conditions.push_back({.type = "Ready", .message = kLong});
  pod.status.phase = kube::PodPhase::kRunning;
  return pod;
}

// Bytes in use: those of the arenas and those of large blocks, which are mapped one by one.
std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Returns how many bytes stay in memory of each of `count` such objects, after `keep`. The size of
// the JSON would not show it: a string that was shortened in place keeps its whole buffer.
template <typename T, typename Keep>
std::size_t bytes_of(const T& object, int count, Keep keep) {
  std::vector<std::shared_ptr<const T>> all;
  const auto put = [&] {
    T one = object;
    keep(one);
    all.push_back(std::make_shared<const T>(std::move(one)));
  };
  all.reserve(static_cast<std::size_t>(count) + 1);
  put();  // constants are made once
  const std::size_t before = heap_bytes();
  for (int i = 0; i < count; ++i) put();
  const std::size_t after = heap_bytes();
  return after > before ? (after - before) / static_cast<std::size_t>(count) : 0;
}

// Returns what is kept of it, and expects that it takes at most `bytes`, by many objects: the
// allocator keeps some memory for itself.
template <typename T>
T kept(const T& object, std::size_t bytes_max) {
  T one = object;
  keep_what_is_read(one);
  EXPECT_LE(kube::encode(one).dump().size(), bytes_max);
  const std::size_t whole = bytes_of(object, 2, [](T&) {});
  if (whole == 0) return one;  // a sanitizer's allocator does not count
  EXPECT_GT(whole, kMega);
  const std::size_t left = bytes_of(object, 16, [](T& that) { keep_what_is_read(that); });
  EXPECT_LE(left, bytes_max);
  return one;
}

// Such pods are most of a cluster's. All that counts of them is the memory that they take on their
// node, and the sum survives although the containers do not.
TEST(KeptFields, OfAPodOfOthersLittleIsKept) {
  const kube::Pod pod = hostile_pod(kContainers);
  const kube::Pod left = kept(pod, 3'072);
  EXPECT_EQ(left.spec.node_name, "n1");
  EXPECT_EQ(memory_request(left), memory_request(pod));
  EXPECT_EQ(memory_request(left), kube::Bytes{std::int64_t{kContainers} * 1024});
  EXPECT_EQ(job_uid_of(left), "");
  EXPECT_EQ(is_finished(left), is_finished(pod));
  EXPECT_EQ(left.metadata.resource_version, "7");
}

// Parts of a pod's text that are not read would be dropped anyway, for each kind of pods.
TEST(KeptFields, OfTheTextOfAPodWhatIsKeptIsRead) {
  json whole = kube::encode(hostile_pod(3));
  for (json& one : whole["spec"]["containers"]) {
    one["readinessProbe"] = one["livenessProbe"] = {{"exec", json::object()}};
    one["workingDir"] = "/w";
    one["volumeMounts"] = {{{"name", "v"}}};
  }
  json ours = whole;
  ours["metadata"]["labels"][std::string{kube::kLabelJobUid}] = "u-1";
  json gated = whole;
  gated["spec"]["schedulingGates"] = {{{"name", kube::kGangGate}}};
  for (const json& object : {whole, ours, gated}) {
    const std::string text = object.dump();
    const auto read = kube::JsonText::read(text, fields_of_pods());
    ASSERT_TRUE(read);
    const kube::JsonView containers = read->root().find("spec").find("containers");
    ASSERT_TRUE((*containers.elements().begin()).find("image").exists());
    for (const char* dropped : {"env", "readinessProbe", "workingDir", "volumeMounts"}) {
      EXPECT_FALSE((*containers.elements().begin()).find(dropped).exists()) << dropped;
    }
    auto want = kube::decode<kube::Pod>(object);
    auto got = kube::decode<kube::Pod>(read->root());
    ASSERT_TRUE(want.ok() && got.ok());
    keep_what_is_read(*want);
    keep_what_is_read(*got);
    EXPECT_TRUE(*got == *want) << kube::encode(*got).dump(1);
  }
}

// Sums up what it can; a node has less.
TEST(KeptFields, NoAmountsOfMemoryOverflow) {
  kube::Pod pod = hostile_pod(kContainers);
  // 2,000 times 8 PB are more than 64 bits hold. The sum stops at 2^46 bytes, 64 TiB.
  for (auto* all : {&pod.spec.containers, &pod.spec.init_containers}) {
    for (kube::Container& one : *all) {
      one.resources.requests["memory"] = *kube::parse_quantity("8P");
      one.restart_policy = "Always";
    }
  }
  pod.spec.overhead["memory"] = *kube::parse_quantity("8P");
  kube::Pod left = pod;
  keep_what_is_read(left);
  EXPECT_EQ(memory_request(pod), kube::Bytes{std::int64_t{1} << 46U});
  EXPECT_EQ(memory_request(left), memory_request(pod));
}

// Changes of such pods may wait for others. A job's pods, those of a gang that may be complete, and
// agents' pods decide about jobs.
TEST(KeptFields, APodOfOthersConcernsOnlyItsNode) {
  const auto concerns_only_its_node_when = [](const auto& change) {
    kube::Pod pod = hostile_pod(1);
    change(pod);
    keep_what_is_read(pod);
    return concerns_only_its_node(pod);
  };
  EXPECT_TRUE(concerns_only_its_node_when([](kube::Pod&) {}));
  EXPECT_FALSE(concerns_only_its_node_when(
      [](kube::Pod& pod) { pod.metadata.labels[std::string{kube::kLabelJobUid}] = "u-1"; }));
  EXPECT_FALSE(concerns_only_its_node_when([](kube::Pod& pod) {
    pod.spec.scheduling_gates = kube::RawJson{json::array({{{"name", kube::kGangGate}}})};
  }));
  EXPECT_FALSE(concerns_only_its_node_when([](kube::Pod& pod) {
    pod.metadata.labels[std::string{kube::kLabelName}] = kube::kLabelNameValue;
    pod.metadata.labels[std::string{kube::kLabelComponent}] = kube::kComponentAgent;
  }));
}

// An agent's pod is a foreign pod, too. If its labels or its readiness were dropped, the
// operator would take each node for one without an agent.
TEST(KeptFields, AnAgentsPodSaysTheSame) {
  kube::Pod pod = hostile_pod(2);
  pod.metadata.labels[std::string{kube::kLabelName}] = kube::kLabelNameValue;
  pod.metadata.labels[std::string{kube::kLabelComponent}] = kube::kComponentAgent;
  pod.status.container_statuses.push_back(running(std::string{kube::kAgentContainer}));
  pod.status.conditions.back().status = kube::ConditionStatus::kTrue;
  kube::Pod left = pod;
  keep_what_is_read(left);
  AgentPods agents;
  agents.expect_in("team-a");
  EXPECT_EQ(agents.observe(kube::key_of(left.metadata), &left), "n1");
  EXPECT_EQ(agents.on("n1"), AgentPod::kReady);
}

// Returns the same, with a kubegang Job as its controller. The other owners are still there.
kube::Pod pod_of_job(int containers) {
  kube::Pod pod = hostile_pod(containers);
  pod.metadata.owner_references.push_back({.api_version = "kubegang.io/v1alpha1",
                                           .kind = "Job",
                                           .name = "train",
                                           .uid = "job",
                                           .controller = true});
  return pod;
}

// The states decide whether the gang has started, has failed, or is stuck, and a container's probe
// whether it may ever be frozen. Messages are cut, codes and reasons are not.
TEST(KeptFields, OfAPodOfAJobItsContainersStatesAreKept) {
  kube::Pod pod = pod_of_job(32);
  const kube::RawJson probe{json{{"exec", {{"command", {kLong}}}}}};
  pod.spec.containers[7].liveness_probe = probe;
  pod.spec.termination_grace_period_seconds = 7;
  pod.status.container_statuses[3].state = {
      .terminated = kube::ContainerTerminated{.exit_code = 3, .reason = "Error", .message = kLong}};
  pod.status.container_statuses[4].state = {
      .waiting = kube::ContainerWaiting{.reason = "ErrImagePull", .message = kLong}};
  const std::string usage = R"({"kubegangUsage":1,"userCPU":"1s")" + std::string(3'000, ' ') + "}";
  pod.status.container_statuses[5].state = {.terminated =
                                                kube::ContainerTerminated{.message = usage}};
  pod.status.container_statuses[6].state = pod.status.container_statuses[5].state;
  const kube::Pod left = kept(pod, 98'304);
  EXPECT_EQ(left.status.container_statuses[5].state.terminated->message, usage);
  EXPECT_EQ(left.status.container_statuses[6].state.terminated->message.size(), 2'048U)
      << "a pod has one launcher";
  EXPECT_EQ(job_uid_of(left), "job");
  EXPECT_EQ(node_of(left), "n1");
  EXPECT_EQ(left.spec.termination_grace_period_seconds, 7);
  EXPECT_EQ(why_never_frozen(left.spec), why_never_frozen(pod.spec));
  EXPECT_TRUE(why_never_frozen(left.spec));
  const SlotPod before{std::make_shared<const kube::Pod>(pod)};
  const SlotPod after{std::make_shared<const kube::Pod>(left)};
  EXPECT_EQ(after.has_started, before.has_started);
  EXPECT_EQ(after.is_calm, before.is_calm);
  EXPECT_EQ(after.newest_start, before.newest_start);
  EXPECT_EQ(left.status.container_statuses[3].state.terminated->exit_code, 3);
  EXPECT_EQ(left.status.container_statuses[4].state.waiting->reason, "ErrImagePull");
}

// More than a template may have: only its own author can have made it. Its claim to be of a job
// must not buy it a thousand containers of room.
TEST(KeptFields, OfAPodThatSaysItIsOfAJobNotAllContainersAreKept) {
  const kube::Pod left = kept(pod_of_job(kContainers), 196'608);
  EXPECT_EQ(left.spec.containers.size(), 64U);
}

// Until kube-scheduler binds the pod, only the affinity says which node it is meant for. The
// author's own affinity beside it goes. The message about the claim is read, so its beginning
// stays.
TEST(KeptFields, APinnedPodKeepsItsPin) {
  kube::Pod pod = pod_of_job(1);
  pod.spec.node_name.reset();
  json affinity = affinity_to_node("n7");
  affinity["podAffinity"] = kLong;
  pod.spec.affinity = kube::RawJson{affinity};
  pod.status.conditions.push_back({.type = "PodScheduled",
                                   .status = kube::ConditionStatus::kFalse,
                                   .reason = "Unschedulable",
                                   .message = "persistentvolumeclaim " + kLong});
  const kube::Pod left = kept(pod, 16'384);
  EXPECT_EQ(node_of(left), "n7");
  ASSERT_TRUE(binding_problem(left));
  EXPECT_TRUE(binding_problem(left)->about_claims);
}

// Returns the verdict on a gang that has this one pod.
PodGangVerdict verdict_of(const kube::Pod& pod) {
  const std::vector pods{std::make_shared<const kube::Pod>(pod)};
  return translate_pod_gang(pods, gang_of(pod.metadata.labels, /*heeds_groups=*/true));
}

// Returns a gang of one pod that waits behind our gate, with each annotation that is read.
kube::Pod gated_pod() {
  kube::Pod pod;
  pod.metadata = {.name = "p", .ns = "team-a", .uid = "u"};
  pod.metadata.labels[std::string{kube::kLabelGang}] = "train";
  pod.metadata.annotations = {{"kubegang.io/pods", "1"},        {"kubegang.io/partition", "a,b"},
                              {"kubegang.io/qos", "high"},      {"kubegang.io/nodes", "1"},
                              {"kubegang.io/time-limit", "1h"}, {"kubegang.io/cpus", "4"}};
  pod.spec.scheduling_gates = kube::RawJson{json::array({{{"name", kube::kGangGate}}})};
  return pod;
}

// The verdict on the cut pod is that on the whole one, to the last field of the job. So no field is
// cut that the translation reads.
TEST(KeptFields, AGatedPodBecomesTheSameJob) {
  kube::Pod pod = gated_pod();
  pod.spec.containers = {
      {.name = "main", .image = "busybox", .command = {"mpirun"}, .args = {kLong}}};
  pod.spec.containers[0].resources.limits["memory"] = *kube::parse_quantity("1Gi");
  pod.spec.containers[0].resources.requests["cpu"] = *kube::parse_quantity("1m");
  pod.spec.node_selector = {{"disk", "fast"}};
  pod.spec.tolerations = {{.key = "gpu", .op = "Exists", .value = "", .effect = "NoSchedule"}};
  pod.spec.termination_grace_period_seconds = 5;
  kube::Pod left = pod;
  keep_what_is_read(left);
  const PodGangVerdict before = verdict_of(pod), after = verdict_of(left);
  ASSERT_EQ(before.kind, Kind::kComplete) << before.message;
  EXPECT_EQ(after.kind, before.kind) << after.message;
  EXPECT_EQ(after.job, before.job);
  EXPECT_THAT(after.job.spec.pod_template.text(), HasSubstr(R"("disk":"fast")"));
  EXPECT_TRUE(has_gang_gate(left));
}

// Each annotation holds half a megabyte. The refusal quotes values; if it quoted them whole, the
// megabytes would come back in the message and go into a status.
TEST(KeptFields, OfAGatedPodLittleIsKept) {
  kube::Pod pod = hostile_pod(kContainers);
  const kube::Pod gated = gated_pod();
  pod.spec.node_name.reset();
  pod.spec.scheduling_gates = gated.spec.scheduling_gates;
  pod.metadata.labels[std::string{kube::kLabelGang}] = "train";
  for (const auto& [name, value] : gated.metadata.annotations) {
    pod.metadata.annotations[name] = name == kube::kAnnotationPods ? "1" : kLong;
  }
  const kube::Pod left = kept(pod, 131'072);
  const PodGangVerdict verdict = verdict_of(left);
  EXPECT_EQ(verdict.kind, Kind::kRefused);
  EXPECT_LE(verdict.message.size(), 8'192U);
  EXPECT_EQ(verdict_of(pod).kind, Kind::kRefused);
}

// The longest list of partitions is kept as it is; a longer one stays refused. A list that was
// merely cut at the bound would be legal, and the job would run elsewhere.
TEST(KeptFields, AnAnnotationIsKeptWholeOrRefused) {
  kube::Pod pod = gated_pod();
  std::string& list = pod.metadata.annotations["kubegang.io/partition"];
  // 32 names of 63 characters and the commas between them: 2,047 characters.
  list = std::string(63, 'a');
  for (int i = 1; i < 32; ++i) list += "," + std::string(63, 'a');
  kube::Pod left = pod;
  keep_what_is_read(left);
  EXPECT_EQ(left.metadata.annotations.at("kubegang.io/partition"), list);
  list += ",b";
  keep_what_is_read(pod);
  EXPECT_EQ(pod.metadata.annotations.at("kubegang.io/partition"),
            std::string(63, 'a') + "," + std::string(36, 'a') + "...");
}

// The operator's own note is compared as a whole, or it would be written again and again.
TEST(KeptFields, OurNoteIsKeptWhole) {
  const std::string sentence(20'000, 'x');
  for (kube::Pod pod : {gated_pod(), hostile_pod(1), pod_of_job(1)}) {
    pod.status.conditions.push_back({.type = std::string{kube::kPodWaiting}, .message = sentence});
    keep_what_is_read(pod);
    const kube::Condition* note = kube::find_condition(pod.status.conditions, kube::kPodWaiting);
    ASSERT_NE(note, nullptr);
    EXPECT_EQ(note->message, sentence);
  }
}

// The template's arguments are judged (mpirun must be refused), its annotations are not. The
// success policy is the largest that the API server takes: 20 rules of 64 KiB.
TEST(KeptFields, OfABatchJobLittleIsKept) {
  kube::BatchJob job;
  fill(job.metadata);
  job.metadata.annotations["kubegang.io/partition"] = kLong;
  job.metadata.annotations["kubegang.io/nodes"] = "2";
  job.spec.parallelism = job.spec.completions = 2;
  const json main{{"name", "main"}, {"image", "busybox"}, {"args", {"mpirun", kLong}}};
  job.spec.pod_template = kube::RawJson{json{{"metadata", {{"annotations", {{"a", kLong}}}}},
                                             {"spec", {{"containers", json::array({main})}}}}};
  const kube::BatchSuccessRule rule{.succeeded_indexes = std::string(65'536, '1')};
  job.spec.success_policy = {.rules = {20, rule}};
  job.status.conditions = {{.type = "example.com/of-others", .reason = "Stays"}};
  const kube::BatchJob left = kept(job, 196'608);
  EXPECT_EQ(translate_batch_job(left, {}).problems, translate_batch_job(job, {}).problems);
  EXPECT_THAT(translate_batch_job(left, {}).problems.at(0), HasSubstr("mpirun"));
  // The operator writes only the difference to it, so it must be whole.
  EXPECT_EQ(left.status, job.status);
  EXPECT_EQ(left.spec.completions, 2);
}

// 3,000 labels are above the 64 KiB that are kept, so most are dropped; the weight is a label
// of kubegang's and must survive. Only resources that the scheduler knows stay, devices among
// them.
TEST(KeptFields, OfANodeLittleIsKept) {
  kube::Node node;
  fill(node.metadata);
  node.metadata.labels.clear();
  for (int i = 0; i < kEntries; ++i) node.metadata.labels["a/" + std::to_string(i)] = kValue;
  node.metadata.labels[std::string{kube::kLabelWeight}] = "5";
  node.spec.taints = {{.key = "k", .value = "v", .effect = "NoSchedule"}};
  node.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  node.status.node_info.os_image = kLong;
  node.status.node_info.kubelet_version = "v1.37.2";
  node.status.node_info.container_runtime_version = "containerd://2.2.9";
  for (const char* name : {"cpu", "memory", "pods", "ephemeral-storage"}) {
    node.status.capacity[name] = node.status.allocatable[name] = *kube::parse_quantity("1Gi");
  }
  for (int i = 0; i < kEntries; ++i) {
    node.status.allocatable["example.com/" + std::to_string(i)] = kube::Quantity::from_units(1);
  }
  for (const char* name : {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu"}) {
    node.status.allocatable[name] = kube::Quantity::from_units(2);
  }
  const kube::Node left = kept(node, 196'608);
  EXPECT_EQ(left.spec, node.spec);
  const NodeVerdict before = translate_node({.node = &node}),
                    after = translate_node({.node = &left});
  EXPECT_EQ(after.spec.weight, 5U);
  EXPECT_EQ(after.spec.cpus, before.spec.cpus);
  EXPECT_EQ(after.spec.memory, before.spec.memory);
  EXPECT_EQ(after.spec.pods_max, before.spec.pods_max);
  EXPECT_EQ(after.spec.tmp_disk, before.spec.tmp_disk);
  EXPECT_EQ(before.spec.devices.size(), 3U);
  EXPECT_EQ(after.spec.devices, before.spec.devices);
  EXPECT_EQ(after.spec.state, before.spec.state);
  EXPECT_TRUE(mounts_images(left.status.node_info));
}

// The CRD bounds the spec of a kubegang Job, and the template is dropped. The attempt's label and
// the controller stay: by them a batch Job finds its attempts.
TEST(KeptFields, OfTheMetadataOfAJobLittleIsKept) {
  kube::Job job;
  fill(job.metadata);
  job.metadata.labels["kubegang.io/attempt"] = "3";
  job.metadata.annotations["kubegang.io/user"] = "ann";
  job.metadata.annotations["kubegang.io/name"] = "";
  job.metadata.owner_references.push_back(
      {.api_version = "batch/v1", .kind = "Job", .name = "train", .uid = "b", .controller = true});
  keep_what_jobs_need(job.metadata);
  EXPECT_LE(kube::encode(job).dump().size(), 1'024U);
  EXPECT_EQ(job.metadata.labels.at("kubegang.io/attempt"), "3");
  EXPECT_EQ(job.metadata.annotations,
            (kube::Labels{{"kubegang.io/name", ""}, {"kubegang.io/user", "ann"}}));
  EXPECT_EQ(kube::controller_of(job.metadata)->uid, "b");
  EXPECT_EQ(job.metadata.resource_version, "7");
}

}  // namespace
}  // namespace control
