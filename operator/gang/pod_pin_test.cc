#include "operator/gang/pod_pin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

using nlohmann::json;

TEST(PodPin, OnlyPodsWithClaimsGoThroughKubeScheduler) {
  EXPECT_FALSE(has_claims(json::object()));
  EXPECT_FALSE(has_claims({{"volumes", json::array({{{"name", "a"}, {"emptyDir", {}}}})}}));
  EXPECT_TRUE(has_claims(
      {{"volumes",
        json::array({{{"name", "a"}, {"emptyDir", json::object()}},
                     {{"name", "b"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}})}}));
  EXPECT_TRUE(
      has_claims({{"volumes", json::array({{{"name", "a"}, {"ephemeral", json::object()}}})}}));
}

TEST(PodPin, APodIsWhereItIsBoundElseWhereItIsPinned) {
  kube::Pod pod;
  EXPECT_EQ(node_of(pod), std::nullopt);
  pod.spec.affinity = kube::RawJson{affinity_to_node("n1.example")};
  EXPECT_EQ(node_of(pod), "n1.example");
  pod.spec.node_name = "n2";
  EXPECT_EQ(node_of(pod), "n2");
  kube::Pod other;
  other.spec.affinity = kube::RawJson{json{{"podAntiAffinity", json::object()}}};
  EXPECT_EQ(node_of(other), std::nullopt);
}

TEST(PodPin, KubeSchedulerSaysWhyItCannotBind) {
  kube::Pod pod;
  EXPECT_FALSE(binding_problem(pod).has_value());
  pod.status.conditions = {{.type = "PodScheduled",
                            .status = kube::ConditionStatus::kFalse,
                            .reason = "Unschedulable",
                            .message = "0/3 nodes are available: 1 node(s) had volume node "
                                       "affinity conflict, 2 node(s) didn't match Pod's node "
                                       "affinity/selector."}};
  ASSERT_TRUE(binding_problem(pod).has_value());
  EXPECT_FALSE(binding_problem(pod)->about_claims);
  pod.status.conditions[0].message =
      "0/3 nodes are available: persistentvolumeclaim \"data\" not found.";
  EXPECT_TRUE(binding_problem(pod)->about_claims);
  pod.status.conditions[0].message = "pod has unbound immediate PersistentVolumeClaims.";
  EXPECT_TRUE(binding_problem(pod)->about_claims);
  pod.spec.node_name = "n1";
  EXPECT_FALSE(binding_problem(pod).has_value());
}

}  // namespace
}  // namespace control
