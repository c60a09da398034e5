#include "translation/freeze_hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

// Goal: no patch of a running pod takes its job out of the rotation. Method: all fields of a spec
// that the API server lets clients change (ValidatePodUpdate of Kubernetes: images,
// activeDeadlineSeconds, tolerations, terminationGracePeriodSeconds, and node selector, affinity
// and gates while it is gated), and resources, which the subresource resize changes.
TEST(FreezeHazards, WhatCanBeChangedInAPodThatExistsForbidsNothing) {
  kube::PodSpec spec;
  spec.containers = {{.name = "main", .image = "other"}};
  spec.containers[0].resources.limits["cpu"] = *kube::parse_quantity("64");
  spec.active_deadline_seconds = 99'999'999;
  spec.termination_grace_period_seconds = 1;
  spec.tolerations = {{.key = "k", .op = "Exists"}};
  spec.node_selector = {{"a", "b"}};
  EXPECT_EQ(why_never_frozen(spec), std::nullopt);
}

// A part that webhooks add to a pod and that the template may not have.
TEST(FreezeHazards, ASidecarThatIsRestartedForbidsFreezing) {
  kube::PodSpec spec;
  spec.containers = {{.name = "main"}};
  spec.init_containers = {{.name = "prepare"}};
  EXPECT_EQ(why_never_frozen(spec), std::nullopt);
  spec.init_containers.push_back({.name = "mesh", .restart_policy = "Always"});
  EXPECT_THAT(why_never_frozen(spec).value(),
              testing::StartsWith("container mesh has the restartPolicy Always ("));
}

}  // namespace
}  // namespace control
