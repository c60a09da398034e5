// The life of a job under a real kubelet: how it ends, what is recorded, what is cleaned up.
#include <algorithm>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class Life : public Cluster {
 protected:
  static std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }
};

TEST_F(Life, AJobWhosePodsSucceedIsCompleted) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "done", .command = shell("sleep 1")}));
  ASSERT_NO_FATAL_FAILURE(wait_state("done", "Completed"));
  EXPECT_EQ(job("done").status.exit_code.value_or(-1), 0);
}

TEST_F(Life, TheExitCodeReachesTheStatusAndTheGangEndsAsAWhole) {
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

TEST_F(Life, AProgramThatIsKilledForItsMemoryMakesTheJobOutOfMemory) {
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "greedy",
              .nodes_count = 1,
              .command = shell("sleep 2; exec tail /dev/zero"),
              .patch = {{"spec", {{"resources", {{"memoryPerNode", "32Mi"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it has ended", [&] { return has_ended("greedy"); }));
  EXPECT_EQ(state("greedy"), "OutOfMemory") << status_text("greedy");
}

TEST_F(Life, TheTimeLimitCountsRunningTimeOnly) {
  // Both take turns: five seconds of running take about ten.
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "limited", .patch = {{"spec", {{"schedule", {{"timeLimit", "5s"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("limited"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_NO_FATAL_FAILURE(wait_state("limited", "Timeout"));
  const kube::Job ended = job("limited");
  ASSERT_TRUE(ended.status.start_time && ended.status.end_time && ended.status.run_time &&
              ended.status.suspend_time);
  const Duration lived = *ended.status.end_time - *ended.status.start_time;
  EXPECT_GE(ended.status.run_time->elapsed, seconds{5});
  EXPECT_GT(ended.status.suspend_time->elapsed, seconds{1}) << status_text("limited");
  EXPECT_GE(lived,
            ended.status.run_time->elapsed + ended.status.suspend_time->elapsed - milliseconds{10});
}

TEST_F(Life, ARequeuedJobIsANewIncarnation) {
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

TEST_F(Life, AFinishedJobIsDeletedAfterItsTimeToLive) {
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "short",
              .nodes_count = 1,
              .command = shell("true"),
              .patch = {{"spec", {{"lifecycle", {{"ttlAfterFinished", "2s"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the job is gone", [&] { return get(job_path("short")).is_null(); }));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods are gone", [&] { return pods("short").empty(); }));
}

TEST_F(Life, ADeletedJobLeavesNothing) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "gone"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("gone"));
  const std::string service = "/api/v1/namespaces/" + ns_ + "/services/gone";
  EXPECT_TRUE(get(service).is_object());
  ASSERT_NO_FATAL_FAILURE(remove(job_path("gone")));
  ASSERT_NO_FATAL_FAILURE(wait_until("pods, Service and timetable entries are gone", [&] {
    if (!pods("gone").empty() || get(service).is_object()) return false;
    const auto all = timetables();
    return std::all_of(all.begin(), all.end(), [&](const kube::NodeTimetable& one) {
      return std::none_of(one.spec.pods.begin(), one.spec.pods.end(),
                          [&](const kube::TimetablePod& pod) { return pod.ns == ns_; });
    });
  }));
}

TEST_F(Life, PodsOfAGangReachOneAnother) {
  // By the pods' addresses: this cluster has no DNS.
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "talks",
              .command = shell("mkdir /www; echo member-$SLURM_NODEID >/www/index.html; "
                               "exec httpd -f -p 8000 -h /www")}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("talks"));
  // Its controller makes them a moment after the pods are ready.
  ASSERT_NO_FATAL_FAILURE(wait_until("the Service has an address of each pod", [&] {
    std::size_t addresses = 0;
    for (const json& slice :
         list("/apis/discovery.k8s.io/v1/namespaces/" + ns_ +
              "/endpointslices?labelSelector=kubernetes.io/service-name=talks")) {
      addresses += slice["endpoints"].size();
    }
    return addresses == 3;
  }));
  const json one = pod_on("talks", node(1)), other = pod_on("talks", node(3));
  const Output answer =
      run_shell(kubectl("exec -n " + ns_ + " " + one["metadata"]["name"].get<std::string>() +
                        " -- sh -c 'printf \"GET / HTTP/1.0\\r\\n\\r\\n\" | nc " +
                        other["status"]["podIP"].get<std::string>() + " 8000'"));
  EXPECT_NE(answer.text.find("member-2"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace kubernetes
