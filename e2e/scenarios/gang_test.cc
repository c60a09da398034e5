// The guide's worked examples (slurm-semantics.md 14) and what users do to jobs, with real
// processes.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

using nlohmann::json;
using testing::Each;

class GangScenario : public Scenario {
 protected:
  bool begin(const ClusterOptions& options = {}) {
    start(options);
    return !IsSkipped() && !HasFatalFailure();
  }
  // Two jobs of all nodes that take turns.
  void two_in_turn() {
    for (const char* name : {"first", "second"}) {
      submit({.name = name, .nodes_count = options_.nodes_count});
      ASSERT_NO_FATAL_FAILURE(wait_ready(name));
    }
    ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  }
  // None of them is seen frozen for that time, a turn of which is many looks.
  static bool never_frozen(const std::vector<std::string>& cgroups, milliseconds time) {
    return devcluster::throughout(
        [&] {
          return std::none_of(cgroups.begin(), cgroups.end(),
                              [&](const std::string& one) { return is_frozen(one); });
        },
        time);
  }
};

// R6.6, the first-slice rule: the incumbent runs until the second boundary after the newcomer
// joined, and the newcomer's processes see no run time between their settling and that.
TEST_F(GangScenario, TheNewcomerRunsAfterTheSecondBoundary) {
  if (!begin({.slice = milliseconds{500}})) return;
  ASSERT_NO_FATAL_FAILURE(two_in_turn());
  const Instant ready = *job("second").status.start_time;
  const auto gang = cluster_->stamps().gang("second");
  for (const auto& [node, runs] : gang.nodes) {
    const auto turns = probe::merge_runs(runs, probe::turn_gap(options_.slice));
    ASSERT_GE(turns.size(), 2U) << node;
    // It runs while it settles, and is frozen soon after it is ready.
    EXPECT_LT(turns[0].end, ready + milliseconds{300}) << node;
    EXPECT_GT(turns[1].begin, ready + options_.slice) << node;
    // No later than the plan may begin (lead), plus two boundaries.
    EXPECT_LT(turns[1].begin, ready + options_.lead + 3 * options_.slice) << node;
  }
}

// The example of slurm-semantics.md 14.2: nine and eleven share three nodes, ten has the other two.
// The job beside the two that conflict never gets a stop signal.
TEST_F(GangScenario, PartialOverlapLeavesTheThirdJobAlone) {
  if (!begin()) return;
  submit({.name = "nine", .nodes_count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_ready("nine"));
  submit({.name = "ten", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("ten"));
  submit({.name = "eleven", .nodes_count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_ready("eleven"));
  EXPECT_EQ(job("nine").status.allocation->hostlist, "n[12-14]");
  EXPECT_EQ(job("ten").status.allocation->hostlist, "n[15-16]");
  EXPECT_EQ(job("eleven").status.allocation->hostlist, "n[12-14]");
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"nine", "eleven"}, {node(0)}));
  const std::vector<std::string> cgroups{pod_cgroup_of("ten", "n15"), pod_cgroup_of("ten", "n16")};
  const Instant from = now();
  EXPECT_TRUE(never_frozen(cgroups, seconds{2}));
  expect_strict_turns(from, now(), {"nine", "eleven"});
  EXPECT_TRUE(runs_now("ten"));
}

// The example of slurm-semantics.md 14.3: fourteen runs beside twelve while thirteen, which needs
// all nodes, waits for its turn.
TEST_F(GangScenario, LocalBackfillingRunsTheSmallJobBesideTheOther) {
  if (!begin()) return;
  submit({.name = "twelve", .nodes_count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_ready("twelve"));
  submit({.name = "thirteen", .nodes_count = 5});
  ASSERT_NO_FATAL_FAILURE(wait_ready("thirteen"));
  submit({.name = "fourteen", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("fourteen"));
  EXPECT_EQ(job("twelve").status.allocation->hostlist, "n[12-14]");
  EXPECT_EQ(job("fourteen").status.allocation->hostlist, "n[15-16]");
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"twelve", "thirteen"}, {node(0)}));
  pass(milliseconds{800});
  const Instant from = now();
  pass(seconds{2});
  const Instant to = now();
  expect_strict_turns(from, to, {"twelve", "thirteen"});
  // On n15, 14 runs in the slots in which 12 runs on n12.
  const auto on_12 = owners_of_slots("n12", from, to, {"twelve", "thirteen"});
  const auto on_15 = owners_of_slots("n15", from, to, {"fourteen", "thirteen"});
  ASSERT_EQ(on_12.size(), on_15.size());
  for (std::size_t i = 0; i < on_12.size(); ++i) {
    EXPECT_EQ(on_15[i], on_12[i] == "twelve" ? "fourteen" : "thirteen") << "slot " << i;
  }
  EXPECT_EQ(overlap_since(from, {"thirteen", "fourteen"}), Duration{});
}

// A newcomer that fits beside the gang whose turn it is runs at once, not at the next boundary.
TEST_F(GangScenario, ANewcomerThatFitsBesideTheRunningGangIsNotHeldUp) {
  if (!begin({.slice = seconds{3}})) return;
  submit({.name = "three", .nodes_count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_ready("three"));
  submit({.name = "more", .nodes_count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_ready("more"));
  submit({.name = "beside", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("beside"));
  pass(milliseconds{400});
  EXPECT_TRUE(runs_now("beside"));
}

// A frozen process cannot handle a signal. A deletion must thaw the pod first, or kubelet's SIGKILL
// after the grace time would be all that it ever gets.
TEST_F(GangScenario, AJobDeletedWhileFrozenHandlesItsSigterm) {
  if (!begin({.nodes_count = 2, .slice = seconds{4}})) return;
  submit({.name = "first", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("first"));
  const std::string marker = directory_ + "/marker";
  submit({.name = "second",
          .nodes_count = 2,
          .command = {
              "sh", "-c",
              "trap 'echo term >> " + marker + "; exit 0' TERM; while :; do sleep 0.02; done"}});
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  const std::string cgroup = pod_cgroup_of("second", node(0));
  ASSERT_NO_FATAL_FAILURE(wait_until("second is frozen", [&] { return is_frozen(cgroup); }));
  remove(job_path("second"));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "its pods are gone", [&] { return pods("second").empty(); }, seconds{3}));
  std::ifstream in{marker};
  std::string one, two;
  in >> one >> two;
  // One line from each of the two pods: the handlers ran, so both pods were thawed before kubelet's
  // SIGKILL.
  EXPECT_EQ(one + two, "termterm");
  ASSERT_NO_FATAL_FAILURE(wait_until("first runs alone", [&] { return runs_now("first"); }));
}

// A job that ends before its pods have settled never joins the rotation, so the job that runs is
// not frozen for it.
TEST_F(GangScenario, AJobThatIsDoneBeforeItIsReadyCompletesAndStopsNobody) {
  if (!begin({.nodes_count = 2})) return;
  submit({.name = "first", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("first"));
  const std::vector<std::string> cgroups{pod_cgroup_of("first", node(0)),
                                         pod_cgroup_of("first", node(1))};
  submit({.name = "quick", .nodes_count = 2, .command = {"true"}});
  EXPECT_TRUE(never_frozen(cgroups, seconds{2}));
  ASSERT_NO_FATAL_FAILURE(wait_state("quick", "Completed"));
  EXPECT_TRUE(never_frozen(cgroups, milliseconds{500}));
  EXPECT_EQ(job("quick").status.exit_code.value_or(-1), 0);
  EXPECT_TRUE(runs_now("first"));
}

// More than two jobs: the cycle is as long as there are jobs, and no two of them overlap.
TEST_F(GangScenario, ThreeJobsGetAThirdEach) {
  if (!begin({.nodes_count = 2})) return;
  for (const char* name : {"a", "b", "c"}) {
    submit({.name = name, .nodes_count = 2});
    ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  }
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"a", "b", "c"}));
  pass(seconds{1});
  const Instant from = now();
  pass(seconds{3});
  const auto slots = owners_of_slots(node(0), from, now(), {"a", "b", "c"});
  // Whatever the order of the three is, it repeats every third slot.
  for (std::size_t i = 3; i < slots.size(); ++i) EXPECT_EQ(slots[i], slots[i - 3]);
  EXPECT_EQ(overlap_since(from, {"a", "b", "c"}), Duration{});
}

}  // namespace
}  // namespace scenarios
