// The life of a job: how it ends, what is recorded, how it starts again.
#include <algorithm>
#include <fstream>

#include "e2e/scenarios/both/on_both.h"

namespace scenarios {
namespace {

// How jobs end, with kubelet's own reports behind it: whatever a container can do reaches the job's
// status, which is where users and workflow engines look.
class JobLife : public OnBoth {
 protected:
  static std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }
};

// The plainest life of all.
TEST_F(JobLife, AJobWhosePodsSucceedIsCompleted) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit({.name = "done", .command = shell("sleep 1")}));
  ASSERT_NO_FATAL_FAILURE(wait_state("done", "Completed"));
  EXPECT_EQ(job("done").status.exit_code.value_or(-1), 0);
}

// One of the pods exits with 42 after 3 s, when all have settled; the others would sleep on.
TEST_F(JobLife, TheExitCodeReachesTheStatusAndTheGangEndsAsAWhole) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "fails",
              .command = shell("sleep 3; [ $SLURM_NODEID != 1 ] || exit 42; exec sleep 1000")}));
  ASSERT_NO_FATAL_FAILURE(wait_state("fails", "Failed"));
  EXPECT_EQ(job("fails").status.exit_code.value_or(-1), 42) << status_text("fails");
  ASSERT_NO_FATAL_FAILURE(wait_until("no pod of it runs", [&] {
    const auto all = pods("fails");
    return std::none_of(all.begin(), all.end(), [](const json& pod) {
      return pod["status"]["phase"] == "Running" || pod["status"]["phase"] == "Pending";
    });
  }));
}

// A user who asks for an hour gets an hour of running: time in which other jobs have their turn is
// not taken from it.
TEST_F(JobLife, TheTimeLimitCountsRunningTimeOnly) {
  if (IsSkipped()) return;
  // Both take turns: five seconds of running take about ten.
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "limited", .patch = {{"spec", {{"schedule", {{"timeLimit", "5s"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("limited"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_NO_FATAL_FAILURE(wait_state("limited", "Timeout"));
  const kube::Job ended = job("limited");
  ASSERT_TRUE(ended.status.submit_time && ended.status.end_time && ended.status.run_time &&
              ended.status.suspend_time);
  // Run time counts from the first container, which is before the job is ready.
  const Duration lived = *ended.status.end_time - *ended.status.submit_time;
  EXPECT_GE(ended.status.run_time->elapsed, seconds{5});
  EXPECT_GT(ended.status.suspend_time->elapsed, seconds{1}) << status_text("limited");
  // Run time and suspended time together are not more than the time from submission to end.
  EXPECT_GE(lived,
            ended.status.run_time->elapsed + ended.status.suspend_time->elapsed - milliseconds{10});
}

// A requeued job begins from nothing, under names that no earlier pod has had.
TEST_F(JobLife, ARequeuedJobIsANewIncarnation) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit({.name = "again", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("again"));
  std::vector<std::string> before;
  for (const json& pod : pods("again")) before.push_back(pod["metadata"]["name"]);
  ASSERT_NO_FATAL_FAILURE(
      patch(job_path("again"), {{"spec", {{"control", {{"requeueRequest", 1}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it runs again", [&] {
    const kube::Job found = job("again");
    return found.status.starts.value_or(0) == 2 && kube::is_true(found.status.conditions, "Ready");
  }));
  EXPECT_EQ(job("again").status.restarts.value_or(0), 1);
  const std::vector<json> after = pods("again");
  EXPECT_EQ(after.size(), 2U);
  const json restarted{{"name", "SLURM_RESTART_COUNT"}, {"value", "1"}};
  for (const json& pod : after) {
    EXPECT_EQ(std::count(before.begin(), before.end(), pod["metadata"]["name"]), 0);
    const json& variables = pod["spec"]["containers"][0]["env"];
    EXPECT_EQ(std::count(variables.begin(), variables.end(), restarted), 1) << variables.dump(1);
  }
}

TEST_F(JobLife, AFinishedJobIsDeletedAfterItsTimeToLive) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "short",
              .nodes_count = 1,
              .command = shell("true"),
              .patch = {{"spec", {{"lifecycle", {{"ttlAfterFinished", "2s"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the job is gone", [&] { return get(job_path("short")).is_null(); }));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods are gone", [&] { return pods("short").empty(); }));
}

// The job is suspended and not only in turn, so that it stays frozen until it is canceled. The
// other job of its node must not be disturbed.
TEST_F(JobLife, ACancelledJobThatIsFrozenHandlesItsSigterm) {
  if (IsSkipped()) return;
  const std::string node = all_nodes().front();
  const json placed{{"spec", {{"placement", {{"hostlist", node}}}}}};
  ASSERT_NO_FATAL_FAILURE(
      submit_ready({.name = "traps",
                    .nodes_count = 1,
                    .command = shell("trap 'echo told >" + folder_of_programs() +
                                     "/told; exit 7' TERM; while :; do sleep 0.1; done"),
                    .patch = placed}));
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other", .nodes_count = 1, .patch = placed}));
  patch(job_path("traps"), {{"spec", {{"control", {{"suspend", true}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_until("the job is frozen", [&] { return all_frozen("traps"); }));
  ASSERT_NO_FATAL_FAILURE(cancel("traps"));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "its handler of SIGTERM ran", [&] { return std::ifstream{folder_here() + "/told"}.good(); }));
  ASSERT_NO_FATAL_FAILURE(wait_state("traps", "Cancelled"));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods are gone", [&] { return pods("traps").empty(); }));
  expect_undisturbed("other");
}

}  // namespace
}  // namespace scenarios
