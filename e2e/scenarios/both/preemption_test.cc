// A job of a higher tier takes all nodes of one of a lower tier: in the three ways in which a
// partition's jobs can be preempted (slurm-semantics.md 7).
#include <algorithm>

#include "e2e/scenarios/both/on_both.h"

namespace scenarios {
namespace {

// Goal: the preemptor has the nodes for itself, on every node and for its whole life; what becomes
// of the victim is its partition's choice.
class Preemption : public OnBoth {
 protected:
  // Two partitions over all nodes, and a victim that runs on all of them.
  void begin_victim(const std::string& mode) {
    std::string hosts;
    for (const std::string& node : all_nodes()) hosts += (hosts.empty() ? "" : ",") + node;
    json spec{{"nodes", {{"hostlist", hosts}}},
              {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}},
              {"preemptMode", mode}};
    ASSERT_NO_FATAL_FAILURE(make_partition(name_of("low"), spec));
    spec.erase("preemptMode");
    spec["priorityTier"] = 2;
    ASSERT_NO_FATAL_FAILURE(make_partition(name_of("high"), spec));
    ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "victim", .partition = name_of("low")}));
  }
  // Returns when the preemptor's pods have settled.
  void preempt() {
    ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "urgent", .partition = name_of("high")}));
  }
};

TEST_F(Preemption, SuspendsTheVictimOnAllNodesUntilThePreemptorEnds) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_victim("Suspend"));
  ASSERT_NO_FATAL_FAILURE(preempt());
  ASSERT_NO_FATAL_FAILURE(wait_state("victim", "Suspended"));
  EXPECT_EQ(job("victim").status.reason, "Preempted");
  ASSERT_NO_FATAL_FAILURE(
      wait_until("it is frozen on all nodes", [&] { return all_frozen("victim"); }));
  const Instant from = now();
  // Longer than a rotation would take: the victim must not have a turn meanwhile.
  pass(std::chrono::ceil<milliseconds>(4 * slice()));
  EXPECT_TRUE(all_frozen("victim"));
  EXPECT_EQ(turns().overlap_since(from, {"victim", "urgent"}), Duration{});
  EXPECT_TRUE(runs_now("urgent", milliseconds{500}));
  ASSERT_NO_FATAL_FAILURE(cancel("urgent"));
  ASSERT_NO_FATAL_FAILURE(wait_state("victim", "Running"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim runs on all nodes", [&] {
    return none_frozen("victim") && runs_now("victim", milliseconds{500});
  }));
  EXPECT_GT(job("victim").status.suspend_time->elapsed, Duration{});
  expect_undisturbed("victim");
}

TEST_F(Preemption, RequeuesTheVictimWhichStartsAgainAsANewIncarnation) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_victim("Requeue"));
  std::vector<std::string> before;
  for (const json& pod : pods("victim")) before.push_back(pod["metadata"]["name"]);
  ASSERT_NO_FATAL_FAILURE(preempt());
  EXPECT_EQ(state("victim"), "Pending");
  EXPECT_EQ(job("victim").status.restarts.value_or(0), 1);
  ASSERT_NO_FATAL_FAILURE(cancel("urgent"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim has started again", [&] {
    const kube::Job found = job("victim");
    return found.status.starts.value_or(0) == 2 && kube::is_true(found.status.conditions, "Ready");
  }));
  // No pod of the first start is left.
  for (const json& pod : pods("victim")) {
    EXPECT_EQ(std::count(before.begin(), before.end(), pod["metadata"]["name"]), 0);
  }
}

// The victim does not come back; its state says that it was preempted and has not failed.
TEST_F(Preemption, CancelsTheVictim) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(begin_victim("Cancel"));
  ASSERT_NO_FATAL_FAILURE(preempt());
  ASSERT_NO_FATAL_FAILURE(wait_state("victim", "Preempted"));
  EXPECT_EQ(job("victim").status.starts.value_or(0), 1);
}

}  // namespace
}  // namespace scenarios
