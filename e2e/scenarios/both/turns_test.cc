// Gangs of all nodes that take turns: what users do to them, and an agent that dies.
#include <gmock/gmock.h>

#include "e2e/scenarios/both/on_both.h"

namespace scenarios {
namespace {

using testing::Each;

class GangTurns : public OnBoth {
 protected:
  // Until they take turns.
  void begin_both() {
    for (const std::string& name : both_) ASSERT_NO_FATAL_FAILURE(submit_ready({.name = name}));
    ASSERT_NO_FATAL_FAILURE(wait_for_turns(both_));
  }
  // From now on, for long enough that each has several slots of its own.
  void expect_turns_from_now() {
    const Instant from = now();
    pass(std::chrono::ceil<milliseconds>(10 * slice()));
    expect_turns(from, both_);
  }
  // No other job has a slot on any node.
  void expect_alone(const std::string& name) {
    pass(std::chrono::ceil<milliseconds>(2 * slice()));
    const Instant from = now();
    pass(std::chrono::ceil<milliseconds>(4 * slice()));
    for (const std::string& node : all_nodes()) {
      EXPECT_THAT(turns().owners_of_slots(node, from, now(), both_), Each(name)) << node;
    }
  }

  const std::vector<std::string> both_{"first", "second"};
};

// Slurm-semantics 14.1.
TEST_F(GangTurns, TwoJobsOfAllNodesTakeTurns) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_both());
  expect_turns_from_now();
  for (const std::string& name : both_) expect_undisturbed(name);
}

TEST_F(GangTurns, WhenOneOfTwoEndsTheOtherRunsAlone) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_both());
  ASSERT_NO_FATAL_FAILURE(cancel("second"));
  ASSERT_NO_FATAL_FAILURE(wait_state("second", "Cancelled"));
  expect_alone("first");
  expect_undisturbed("first");
}

TEST_F(GangTurns, AUserSuspendsAndResumesOneOfTwo) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_both());
  patch(job_path("first"), {{"spec", {{"control", {{"suspend", true}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_state("first", "Suspended"));
  expect_alone("second");
  EXPECT_TRUE(all_frozen("first"));
  patch(job_path("first"), {{"spec", {{"control", {{"suspend", false}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(both_));
  expect_turns_from_now();
  for (const std::string& name : both_) expect_undisturbed(name);
}

// Where it has a guard, and kubelet starts that first, both gangs run there for a moment.
TEST_F(GangTurns, AnAgentThatIsKilledTakesItsPodsUpAgain) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_both());
  ASSERT_NO_FATAL_FAILURE(kill_agent(all_nodes().back()));
  pass(std::chrono::ceil<milliseconds>(2 * slice()));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(both_));
  expect_turns_from_now();
  for (const std::string& name : both_) expect_undisturbed(name);
}

}  // namespace
}  // namespace scenarios
