// The last test of a run (it runs by itself): the chart goes, the jobs stay.
#include <algorithm>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class Uninstall : public Alone<Cluster> {};

// Without agents nothing thaws a frozen pod: the agents must do it as they go. Both gangs run then,
// at the same time.
TEST_F(Uninstall, LeavesNoPodFrozenAndNoJobLost) {
  for (const char* name : {"first", "second"}) ASSERT_NO_FATAL_FAILURE(submit({.name = name}));
  for (const char* name : {"first", "second"}) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  const Output gone = helm("uninstall kubegang -n kubegang-system --wait --timeout 120s");
  ASSERT_EQ(gone.exit_code, 0) << gone.text;
  EXPECT_TRUE(devcluster::throughout(
      [&] {
        for (const char* name : {"first", "second"}) {
          for (const json& pod : pods(name)) {
            if (is_frozen(pod) || pod["status"]["phase"] != "Running") return false;
          }
        }
        return true;
      },
      seconds{2}));
  for (const char* name : {"first", "second"}) expect_undisturbed(name);
  for (const char* name : {"first", "second"}) {
    EXPECT_TRUE(turns().runs_at(now(), name, milliseconds{500})) << name;
  }
}

}  // namespace
}  // namespace kubernetes
