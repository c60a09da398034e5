// The fixture of the scenarios of this folder: that of the test program which they are compiled
// into.
#pragma once

#ifdef KUBEGANG_ON_KUBERNETES
#include "e2e/kubernetes/tests/harness.h"
#else
#include "e2e/scenarios/harness.h"
#endif

namespace scenarios {

// Both configurations say the same of requeue and backfill; that of Kubernetes is in values.yaml.
#ifdef KUBEGANG_ON_KUBERNETES
using OnBoth = kubernetes::Cluster;
// From the decision to pods that run, on a busy machine, beyond what the devcluster needs.
inline constexpr seconds kLaunchTakes{10};
#else
class OnBoth : public Scenario {
 protected:
  void SetUp() override {
    start({.nodes_count = 3,
           .config = R"({"requeue": {"delay": "1s"},
                         "backfill": {"interval": "1s", "resolution": "1s"}})"});
  }
};
inline constexpr seconds kLaunchTakes{0};
#endif

}  // namespace scenarios
