#include "e2e/devcluster/kubelet/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;

// Keys of ConfigMaps without an API server: the map "there" has every key, any other is missing.
struct FakeLookup final : KeyLookup {
  base::Result<std::string> find(Kind, const std::string&, const kube::KeySelector& key) override {
    if (key.name == "there") return "value of " + key.key;
    return base::Error{base::Code::kNotFound, "configmap \"" + key.name + "\" not found"};
  }
};

// Returns a pod of a job on node n12, with the containers that a test is about.
json pod_json(json containers) {
  return {
      {"metadata",
       {{"namespace", "default"},
        {"name", "a-0"},
        {"uid", "u-1"},
        {"labels", {{"kubegang.io/job", "a"}}}}},
      {"spec",
       {{"nodeName", "n12"}, {"restartPolicy", "Never"}, {"containers", std::move(containers)}}}};
}

kube::Pod parsed(json containers) {
  return kube::decode<kube::Pod>(pod_json(std::move(containers))).value();
}

// Containers: 5m requested, and 1 CPU as a limit, which is its request too: 1005m. The larger init
// container wants 3 CPUs, more than their sum.
TEST(PodRequests, AreTheSumOfTheContainersOrTheLargestInitContainer) {
  kube::Pod pod = parsed(json::parse(R"([
      {"name":"a","resources":{"requests":{"cpu":"5m","memory":"64Mi"},"limits":{"cpu":"2"}}},
      {"name":"b","resources":{"limits":{"cpu":"1"}}}])"));
  EXPECT_EQ(pod_requests(pod), (Resources{kube::MilliCpu{1005}, kube::Bytes{64 << 20}}));
  pod.spec.init_containers = parsed(json::parse(R"([
      {"name":"i","resources":{"requests":{"cpu":"3"}}},
      {"name":"j","resources":{"requests":{"cpu":"1"}}}])"))
                                 .spec.containers;
  EXPECT_EQ(pod_requests(pod), (Resources{kube::MilliCpu{3000}, kube::Bytes{64 << 20}}));
}

// Not the one of the pod's spec: a user may delete with another grace period than the author wrote.
TEST(DeletionGrace, IsThatOfTheDeletion) {
  kube::Pod pod = parsed(json::parse(R"([{"name":"a"}])"));
  EXPECT_EQ(deletion_grace(pod), std::nullopt);
  pod.metadata.deletion_timestamp = base::Instant{};
  EXPECT_EQ(deletion_grace(pod), std::chrono::seconds{30});
  pod.metadata.deletion_grace_period_seconds = 2;
  EXPECT_EQ(deletion_grace(pod), std::chrono::seconds{2});
}

// SOURCE: Kubernetes, "Pod Quality of Service Classes". The last pod has one container that is
// guaranteed and one that says nothing: Burstable.
TEST(QosClass, FollowsRequestsAndLimits) {
  EXPECT_EQ(qos_class(parsed(json::parse(R"([{"name":"a"}])"))), kube::QosClass::kBestEffort);
  EXPECT_EQ(
      qos_class(parsed(json::parse(R"([{"name":"a","resources":{"requests":{"cpu":"1m"}}}])"))),
      kube::QosClass::kBurstable);
  EXPECT_EQ(qos_class(parsed(
                json::parse(R"([{"name":"a","resources":{"limits":{"cpu":1,"memory":"1Gi"}}}])"))),
            kube::QosClass::kGuaranteed);
  EXPECT_EQ(qos_class(parsed(json::parse(
                R"([{"name":"a","resources":{"limits":{"cpu":1,"memory":"1Gi"}}},{"name":"b"}])"))),
            kube::QosClass::kBurstable);
}

// The agent looks for pods under these names, so a devcluster must lay them out as a node does.
TEST(PodCgroup, HasTheNamesOfTheCgroupfsDriver) {
  EXPECT_EQ(pod_cgroup(kube::QosClass::kGuaranteed, "x"), "kubepods/podx");
  EXPECT_EQ(pod_cgroup(kube::QosClass::kBurstable, "x"), "kubepods/burstable/podx");
  EXPECT_EQ(pod_cgroup(kube::QosClass::kBestEffort, "x"), "kubepods/besteffort/podx");
}

// In order: a known name, an unknown one, an escaped one, no parentheses, no end.
TEST(ExpandReferences, ReplacesKnownNamesOnly) {
  const std::map<std::string, std::string> variables{{"A", "1"}};
  EXPECT_EQ(expand_references("$(A)/$(B) $$(A) $A $(A", variables), "1/$(B) $(A) $A $(A");
}

// Programs of a job learn from such variables which pod they are and where. The optional key that
// is missing leaves its variable out.
TEST(ContainerEnvironment, HasFieldsKeysAndReferencesToEarlierOnes) {
  const kube::Pod pod = parsed(json::parse(R"json([{"name":"a","env":[
      {"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
      {"name":"JOB","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['kubegang.io/job']"}}},
      {"name":"KEY","valueFrom":{"configMapKeyRef":{"name":"there","key":"k"}}},
      {"name":"NONE","valueFrom":{"configMapKeyRef":{"name":"not","key":"k","optional":true}}},
      {"name":"ALL","value":"$(JOB)@$(NODE)"}]}])json"));
  FakeLookup lookup;
  const auto environment =
      container_environment(pod, pod.spec.containers[0], {}, {{"PATH", "/bin"}}, lookup);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment,
              ElementsAre("ALL=a@n12", "JOB=a", "KEY=value of k", "NODE=n12", "PATH=/bin"));
}

// The message becomes that of a waiting container, so it must say what to create.
TEST(ContainerEnvironment, SaysWhichConfigMapIsMissing) {
  const kube::Pod pod = parsed(json::parse(
      R"([{"name":"a","env":[{"name":"X",
            "valueFrom":{"configMapKeyRef":{"name":"no","key":"k"}}}]}])"));
  FakeLookup lookup;
  const auto environment = container_environment(pod, pod.spec.containers[0], {}, {}, lookup);
  ASSERT_FALSE(environment.ok());
  EXPECT_EQ(environment.error().message, "configmap \"no\" not found");
}

}  // namespace
}  // namespace devcluster
