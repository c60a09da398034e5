#include "operator/gang/pod_pin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"

namespace control {
namespace {

using nlohmann::json;

// An ephemeral volume makes a claim with the pod; an emptyDir needs none. All other pods are bound
// by the operator itself, which saves a second opinion about the node.
TEST(PodPin, OnlyPodsWithClaimsGoThroughKubeScheduler) {
  EXPECT_FALSE(has_claims(json::object()));
  EXPECT_FALSE(has_claims({{"volumes", json::array({{{"name", "a"}, {"emptyDir", {}}}})}}));
  EXPECT_TRUE(has_claims(
      {{"volumes",
        json::array({{{"name", "a"}, {"emptyDir", json::object()}},
                     {{"name", "b"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}})}}));
  EXPECT_TRUE(
      has_claims({{"volumes", json::array({{{"name", "a"}, {"ephemeral", json::object()}}})}}));
  EXPECT_TRUE(has_claims({{"resourceClaims", json::array({{{"name", "gpu"}}})}}));
  EXPECT_FALSE(has_claims({{"resourceClaims", json::array()}}));
}

// By another pod of its name, or by its gate: in each case nothing can be pinned any longer. A pod
// that is pinned has lost its gate by that.
TEST(PodPin, OnlyThePodOfTheJobThatHasItsGateIsPinned) {
  kube::Job job;
  job.metadata.uid = "job";
  const json gates = json::array({{{"name", std::string{kube::kGangGate}}}});
  const json pod{{"metadata", {{"uid", "pod"}}}, {"spec", {{"schedulingGates", gates}}}};
  const auto state = [&](const json& change) {
    json changed = pod;
    changed.merge_patch(change);
    return pin_state(changed, "pod", job);
  };
  const std::string label{kube::kLabelJobUid};
  EXPECT_EQ(state(json::object()), PinState::kMayBePinned);
  EXPECT_EQ(state({{"metadata", {{"uid", "another"}}}}), PinState::kGone);
  EXPECT_EQ(state({{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}}),
            PinState::kGone);
  EXPECT_EQ(state({{"spec", {{"schedulingGates", nullptr}}}}), PinState::kGone);
  EXPECT_EQ(state({{"metadata", {{"labels", {{label, "job"}}}}},
                   {"spec", {{"schedulingGates", nullptr}}}}),
            PinState::kPinned);
  EXPECT_EQ(state({{"metadata", {{"labels", {{label, "another"}}}}},
                   {"spec", {{"schedulingGates", nullptr}}}}),
            PinState::kGone);
}

// A name with a dot: the pin matches the node's name and not the label kubernetes.io/hostname,
// which may differ from it. Affinity of another form is its author's and pins nothing.
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

// With another program's gate beside kubegang's the pod is not yet to be decided on. Pinned then,
// it would still not start, and its gang would hold nodes meanwhile.
TEST(PodPin, OnlyOurGateByItselfCounts) {
  const auto with = [](const json& gates) {
    kube::Pod pod;
    if (!gates.is_null()) pod.spec.scheduling_gates = kube::RawJson{gates};
    return has_gang_gate(pod);
  };
  const json ours{{"name", "kubegang.io/gang"}};
  const json theirs{{"name", "example.com/quota"}};
  EXPECT_FALSE(with(nullptr));
  EXPECT_FALSE(with(json::array()));
  EXPECT_FALSE(with(json::array({theirs})));
  EXPECT_FALSE(with(json::array({ours, theirs})));
  EXPECT_TRUE(with(json::array({ours})));
}

// In two writes kube-scheduler could see the pod between them, without a gate and without a node.
TEST(PodPin, AGatedPodIsPinnedAndReleasedInOneWrite) {
  kube::Job job;
  job.metadata.name = "train-x";
  job.metadata.uid = "u";
  job.status.starts = 1;
  const json theirs{{"key", "theirs"}, {"operator", "Exists"}};
  const json patch =
      pin_patch({{"tolerations", json::array({theirs})}}, job, {.name = "w", .node = "n7"}, "0-3");
  EXPECT_EQ(patch["spec"]["affinity"], affinity_to_node("n7"));
  EXPECT_TRUE(patch["spec"]["schedulingGates"].is_null());
  EXPECT_EQ(patch["spec"]["tolerations"][0], theirs) << "a merge patch replaces the list";
  EXPECT_EQ(patch["spec"]["tolerations"][1]["key"], "kubegang.io/managed");
  EXPECT_EQ(patch["metadata"]["labels"]["kubegang.io/job-uid"], "u");
  EXPECT_EQ(patch["metadata"]["annotations"]["kubegang.io/cpuset"], "0-3");
  const json unbound = pin_patch(json::object(), job, {.name = "w", .node = "n7"}, "");
  EXPECT_TRUE(unbound["metadata"]["annotations"]["kubegang.io/cpuset"].is_null())
      << "the author's own is removed";
}

// Claims that are not there yet may come; a node that cannot have the volume will not change.
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
  EXPECT_FALSE(binding_problem(pod)->about_devices);
  pod.status.conditions[0].message =
      "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient nvidia.com/gpu. preemption: "
      "0/2 nodes are available";
  EXPECT_TRUE(binding_problem(pod)->about_devices);
  EXPECT_FALSE(binding_problem(pod)->about_claims);
  pod.status.conditions[0].message = "0/2 nodes are available: 2 Insufficient example.com/nic.";
  EXPECT_TRUE(binding_problem(pod)->about_devices);
  pod.status.conditions[0].message = "0/2 nodes are available: 2 Insufficient hugepages-2Mi.";
  EXPECT_FALSE(binding_problem(pod)->about_devices);
  pod.status.conditions[0].message =
      "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node "
      "affinity/selector.";
  EXPECT_FALSE(binding_problem(pod)->about_claims);
  pod.status.conditions[0].message =
      "0/2 nodes are available: resourceclaim.resource.k8s.io \"gpu\" not found.";
  EXPECT_TRUE(binding_problem(pod)->about_claims);
  // Bound after all: an earlier condition no longer counts.
  pod.spec.node_name = "n1";
  EXPECT_FALSE(binding_problem(pod).has_value());
}

}  // namespace
}  // namespace control
