// The agent keeps of a pod only the fields that its facts follow from, however much its author
// wrote.
#include "node-agent/policy/pod_facts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "api/wellknown.h"

namespace agent {
namespace {

using std::chrono::seconds;

constexpr int kEntries = 3'000;
const std::string kLong(300, 'x');

// Returns a container in which every text is long.
kube::Container container(const std::string& name) {
  kube::Container one{.name = name, .image = kLong, .command = {kLong}, .args = {kLong}};
  one.env = {{.name = "A", .value = kLong}};
  one.resources.requests["example.com/" + name] = kube::Quantity::from_units(1);
  return one;
}

kube::ContainerStatus running(const std::string& name) {
  kube::ContainerStatus status{.name = name};
  status.state.running = kube::ContainerRunning{base::Instant{seconds{1'767'225'600}}};
  return status;
}

// Returns a megabyte in each field that a user may fill.
kube::Pod hostile_pod(int containers) {
  kube::Pod pod;
  pod.metadata.name = "huge";
  pod.metadata.ns = "default";
  pod.metadata.uid = "uid";
  pod.spec.node_name = "n1";
  for (int i = 0; i < kEntries; ++i) {
    const std::string key = "kubegang.io/" + std::to_string(i);
    pod.metadata.labels[key] = kLong;
    pod.metadata.annotations[key] = kLong;
    pod.metadata.owner_references.push_back({.kind = "ConfigMap", .name = kLong, .uid = key});
    pod.spec.node_selector[key] = kLong;
    pod.spec.tolerations.push_back({.key = kLong});
  }
  for (int i = 0; i < containers; ++i) {
    pod.spec.containers.push_back(container("c" + std::to_string(i)));
    pod.status.container_statuses.push_back(running("c" + std::to_string(i)));
  }
  pod.status.phase = kube::PodPhase::kRunning;
  return pod;
}

// The facts must be the same before and after: a field that is dropped and still read would change
// them.
void expect_little_is_kept(const kube::Pod& pod, std::size_t bytes_max) {
  ASSERT_GT(kube::encode(pod).dump().size(), std::size_t{1} << 20);
  kube::Pod kept = pod;
  keep_what_facts_need(kept);
  EXPECT_EQ(pod_facts(kept, seconds{5}), pod_facts(pod, seconds{5}));
  EXPECT_LE(kube::encode(kept).dump().size(), bytes_max);
}

// Most pods of a node have no Job, and their authors choose how large they are.
TEST(PodFacts, OfAPodOfOthersLittleIsKept) {
  expect_little_is_kept(hostile_pod(kEntries), 1'024);
}

// A job's pod that has ended is no longer switched, so its containers do not matter.
TEST(PodFacts, OfARefusedPodLittleIsKept) {
  kube::Pod pod = hostile_pod(kEntries);
  pod.metadata.labels[std::string{kube::kLabelJobUid}] = "0f5b3d6e-6c3f-4d0e-9a51-6c1a5e0d7c11";
  pod.status.phase = kube::PodPhase::kFailed;
  expect_little_is_kept(pod, 1'024);
}

// A template has up to 32 containers. Their start decides when the pod has settled.
TEST(PodFacts, OfAPodOfAJobItsContainersStatesAreKept) {
  kube::Pod pod = hostile_pod(32);
  pod.metadata.labels[std::string{kube::kLabelJobUid}] = "0f5b3d6e-6c3f-4d0e-9a51-6c1a5e0d7c11";
  pod.metadata.annotations[std::string{kube::kAnnotationCpuSet}] = "0-3";
  ASSERT_TRUE(pod_facts(pod, seconds{5}).settled_at);
  expect_little_is_kept(pod, 8'192);
}

// 2^63 - 1 seconds do not fit into a Duration of microseconds: they would come out as -1 s, and the
// pod would not be thawed for its end at all.
TEST(PodFacts, AGraceTimeOfAnyLengthStaysOne) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  kube::Pod pod;
  pod.metadata.deletion_timestamp = base::Instant{seconds{1'767'225'600}};
  pod.spec.termination_grace_period_seconds = kMost;
  EXPECT_GT(pod_facts(pod, seconds{5}).ending_within, std::chrono::hours{1});
  pod.spec.termination_grace_period_seconds = 30;
  pod.metadata.deletion_grace_period_seconds = kMost;
  pod.metadata.owner_references = {{.api_version = "kubegang.io/v1alpha1",
                                    .kind = "Job",
                                    .name = "train",
                                    .uid = "job",
                                    .controller = true}};
  EXPECT_GT(pod_facts(pod, seconds{5}).ending_within, std::chrono::hours{1});
  pod.metadata.deletion_grace_period_seconds = 10;
  EXPECT_EQ(pod_facts(pod, seconds{5}).ending_within, seconds{10});
}

// A pod that ends stays thawed for its grace time. The owner of a pod that the operator has adopted
// may delete it without an end of its gang: a day of grace would be a day without turns.
TEST(PodFacts, ADeletionBuysAnAdoptedPodNoMoreThanItsSpecSays) {
  kube::Pod pod;
  pod.metadata.labels[std::string{kube::kLabelJobUid}] = "job";
  pod.metadata.deletion_timestamp = base::Instant{seconds{1'767'225'600}};
  pod.spec.termination_grace_period_seconds = 30;
  pod.metadata.deletion_grace_period_seconds = 86'400;
  EXPECT_EQ(pod_facts(pod, seconds{5}).ending_within, seconds{30});
  pod.metadata.deletion_grace_period_seconds = 10;
  EXPECT_EQ(pod_facts(pod, seconds{5}).ending_within, seconds{10});
}

}  // namespace
}  // namespace agent
