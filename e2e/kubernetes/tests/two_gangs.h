// Two gangs of all three nodes that take turns, shared by the tests of a suite. They prove by
// themselves that nothing disturbed them.
#pragma once

#include <string>
#include <vector>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {

class TwoGangs : public Cluster {
 protected:
  static const std::vector<std::string> kBoth;  // "first", "second"

  // Begins while they take turns.
  void SetUp() override;
  void TearDown() override;
  static void TearDownTestSuite();

  // Every test ends with this.
  void expect_nobody_noticed();
  // The same for what disturbs them for a moment, as it may: from now on nothing does.
  void expect_turns_again();
  // Returns the pod of either gang on the node at a moment when it is frozen.
  json frozen_pod_on(const std::string& node);
  // It starts on all nodes, and goes: who is needed for that works.
  void run_third_gang();

  Instant from_{};  // when the test began

 private:
  inline static bool is_made_ = false;
  inline static std::string shared_ns_;
};

}  // namespace kubernetes
