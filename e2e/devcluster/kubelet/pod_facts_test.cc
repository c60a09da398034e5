#include "e2e/devcluster/kubelet/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;

struct FakeLookup final : KeyLookup {
  base::Result<std::string> find(EnvVar::Source, const std::string&, const std::string& object,
                                 const std::string& key) override {
    if (object == "there") return "value of " + key;
    return base::Error{base::Code::kNotFound, "configmap \"" + object + "\" not found"};
  }
};

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

PodSpec parsed(json containers) {
  return parse_pod(pod_json(std::move(containers))).value();
}

TEST(PodSpec, ReadsWhatTheKubeletNeeds) {
  const PodSpec pod = parsed(json::parse(R"([{"name":"main","image":"busybox",
      "command":["sh","-c"],"args":["true"],"workingDir":"/tmp",
      "resources":{"requests":{"cpu":"5m","memory":"64Mi"},"limits":{"cpu":"2"}}}])"));
  EXPECT_EQ(pod.name, "a-0");
  EXPECT_EQ(pod.node, "n12");
  EXPECT_EQ(pod.hostname, "a-0");
  EXPECT_EQ(pod.grace, std::chrono::seconds{30});
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_THAT(pod.containers[0].command, ElementsAre("sh", "-c"));
  EXPECT_EQ(pod.containers[0].working_dir, "/tmp");
  EXPECT_EQ(pod.containers[0].requests, (Resources{MilliCpu{5}, MemoryBytes{64 << 20}}));
  EXPECT_EQ(pod.containers[0].limits.cpu, MilliCpu{2000});
}

TEST(PodSpec, RefusesAPodWithoutContainers) {
  EXPECT_FALSE(parse_pod(pod_json(json::array())).ok());
  EXPECT_FALSE(parse_pod(json::object()).ok());
}

TEST(QosClass, FollowsRequestsAndLimits) {
  EXPECT_EQ(qos_class(parsed(json::parse(R"([{"name":"a"}])"))), QosClass::kBestEffort);
  EXPECT_EQ(
      qos_class(parsed(json::parse(R"([{"name":"a","resources":{"requests":{"cpu":"1m"}}}])"))),
      QosClass::kBurstable);
  EXPECT_EQ(qos_class(parsed(
                json::parse(R"([{"name":"a","resources":{"limits":{"cpu":1,"memory":"1Gi"}}}])"))),
            QosClass::kGuaranteed);
  EXPECT_EQ(qos_class(parsed(json::parse(
                R"([{"name":"a","resources":{"limits":{"cpu":1,"memory":"1Gi"}}},{"name":"b"}])"))),
            QosClass::kBurstable);
}

TEST(PodCgroup, HasTheNamesOfTheCgroupfsDriver) {
  EXPECT_EQ(pod_cgroup(QosClass::kGuaranteed, "x"), "kubepods/podx");
  EXPECT_EQ(pod_cgroup(QosClass::kBurstable, "x"), "kubepods/burstable/podx");
  EXPECT_EQ(pod_cgroup(QosClass::kBestEffort, "x"), "kubepods/besteffort/podx");
}

TEST(ExpandReferences, ReplacesKnownNamesOnly) {
  const std::map<std::string, std::string> variables{{"A", "1"}};
  EXPECT_EQ(expand_references("$(A)/$(B) $$(A) $A $(A", variables), "1/$(B) $(A) $A $(A");
}

TEST(ContainerEnvironment, HasFieldsKeysAndReferencesToEarlierOnes) {
  const PodSpec pod = parsed(json::parse(R"json([{"name":"a","env":[
      {"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
      {"name":"JOB","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['kubegang.io/job']"}}},
      {"name":"KEY","valueFrom":{"configMapKeyRef":{"name":"there","key":"k"}}},
      {"name":"NONE","valueFrom":{"configMapKeyRef":{"name":"not","key":"k","optional":true}}},
      {"name":"ALL","value":"$(JOB)@$(NODE)"}]}])json"));
  FakeLookup lookup;
  const auto environment =
      container_environment(pod, pod.containers[0], {}, {{"PATH", "/bin"}}, lookup);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment,
              ElementsAre("ALL=a@n12", "JOB=a", "KEY=value of k", "NODE=n12", "PATH=/bin"));
}

TEST(ContainerEnvironment, SaysWhichConfigMapIsMissing) {
  const PodSpec pod = parsed(json::parse(
      R"([{"name":"a","env":[{"name":"X",
            "valueFrom":{"configMapKeyRef":{"name":"no","key":"k"}}}]}])"));
  FakeLookup lookup;
  const auto environment = container_environment(pod, pod.containers[0], {}, {}, lookup);
  ASSERT_FALSE(environment.ok());
  EXPECT_EQ(environment.error().message, "configmap \"no\" not found");
}

}  // namespace
}  // namespace devcluster
