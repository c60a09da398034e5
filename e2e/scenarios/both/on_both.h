// The fixture of the scenarios of this folder: that of the test program which they are compiled
// into.
#pragma once

#ifdef KUBEGANG_ON_KUBERNETES
#include "e2e/kubernetes/tests/harness.h"
#else
#include "e2e/scenarios/harness.h"
#endif

namespace scenarios {

#ifdef KUBEGANG_ON_KUBERNETES
using OnBoth = kubernetes::Cluster;
#else
class OnBoth : public Scenario {
 protected:
  void SetUp() override { start({.nodes_count = 3, .config = R"({"requeue": {"delay": "1s"}})"}); }
};
#endif

}  // namespace scenarios
