#include "operator/translate/freeze_hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

// Parts that webhooks add to a pod and that the template may not have.
TEST(FreezeHazards, ADeadlineAndASidecarThatIsRestartedForbidFreezing) {
  kube::PodSpec spec;
  spec.containers = {{.name = "main"}};
  spec.init_containers = {{.name = "prepare"}};
  EXPECT_EQ(why_never_frozen(spec), std::nullopt);
  spec.init_containers.push_back({.name = "mesh", .restart_policy = "Always"});
  EXPECT_THAT(why_never_frozen(spec).value(),
              testing::StartsWith("container mesh has the restartPolicy Always ("));
  spec.active_deadline_seconds = 600;
  EXPECT_THAT(why_never_frozen(spec).value(),
              testing::StartsWith("activeDeadlineSeconds is set ("));
}

}  // namespace
}  // namespace control
