// A watch of pods that is silent, as over a connection that is half open, while all else works.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/array_status.h"
#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"
#include "operator/testing/batch_job_fixture.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// From now on the operator sees no pod, but in the answers to its requests.
void silence_pods(World& world) {
  world.server().inject({.verb = "watch",
                         .resource = "pods",
                         .user_agent = "operator",
                         .code = 503,
                         .count = 1'000'000});
}

bool has_running_pods(World& world, const std::string& job) {
  const std::vector<kube::Pod> pods = world.pods_of(job);
  return std::ranges::any_of(pods, [](const kube::Pod& pod) { return !is_finished(pod); });
}

using UnseenPods = BatchJobFixture;

// Two places, four pods. The second two are known from the answers to their creation alone. They
// are not lost members: the Job ends in its first start, and nothing runs twice.
TEST_F(UnseenPods, AreNoLostMembersOfAGangThatRuns) {
  world_.process().writer().be_slow(world_.clock(), seconds{1});
  create(make_batch_job("sweep", {.parallelism = 2, .completions = 4}, "10s", nullptr, nullptr));
  const auto made = [&] { return world_.process().loop().counters().pod_creates; };
  ASSERT_TRUE(world_.run_until([&] { return made() == 4; }, minutes{2}));
  silence_pods(world_);
  ASSERT_TRUE(ends("sweep", minutes{3})) << world_.log_tail();
  EXPECT_TRUE(kube::is_true(get("sweep").status.conditions, kube::kBatchComplete));
  ASSERT_EQ(ours().size(), 1U);
  EXPECT_EQ(ours().front().status.starts, 1);
  EXPECT_EQ(made(), 4);
  expect_no_violations(world_);
}

// The job is canceled 31 s after the answers to the creation of its pods. It has ended when they
// have, and not before: its nodes would be given to the next job while they run.
TEST_F(UnseenPods, KeepTheirNodesUntilTheyHaveEnded) {
  silence_pods(world_);
  world_.apply(gang_job("one", 2, ""));
  ASSERT_TRUE(world_.run_until([&] { return has_running_pods(world_, "one"); }, seconds{5}));
  world_.run_for(seconds{28});
  world_.process().writer().be_slow(world_.clock(), seconds{3});
  world_.run_for(seconds{3});
  world_.patch_job("one", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world_.run_until([&] { return world_.state("one") == "Cancelled"; }, minutes{2}))
      << world_.log_tail();
  EXPECT_FALSE(has_running_pods(world_, "one")) << world_.log_tail();
  expect_no_violations(world_);
}

// Makes a pod on n12 of the Job of that name, of a start that is no longer known.
json stray_pod(World& world, const std::string& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", job + "-stray-0"},
            {"namespace", kTeam},
            {"labels", {{kube::kLabelJob, job}, {kube::kLabelStart, "7"}}},
            {"ownerReferences", json::array({{{"apiVersion", "kubegang.io/v1alpha1"},
                                              {"kind", "Job"},
                                              {"name", job},
                                              {"uid", world.job(job).metadata.uid},
                                              {"controller", true}}})}}},
          {"spec",
           {{"nodeName", "n12"},
            {"containers", json::array({{{"name", "main"}, {"image", "busybox"}}})}}}};
}

// It was made by a creation whose answer was lost, and seen when its job had ended. The pods that
// have ended with their job stay for their logs.
TEST_F(UnseenPods, AreEndedWhenTheyAreSeenAfterTheEndOfTheirJob) {
  world_.apply(gang_job("short", 2, "5s"));
  ASSERT_TRUE(world_.run_until([&] { return world_.state("short") == "Completed"; }, minutes{1}));
  world_.run_for(seconds{5});
  ASSERT_TRUE(world_.client().create_json<kube::Pod>(kTeam, stray_pod(world_, "short")).ok());
  world_.run_for(seconds{10});
  EXPECT_EQ(world_.pods_of("short").size(), 2U) << world_.log_tail();
  EXPECT_FALSE(has_running_pods(world_, "short"));
}

// The array goes on: one of its tasks has ended, and others wait. Neither may have a pod.
TEST_F(UnseenPods, AreEndedWhenTheyAreSeenAfterTheEndOfTheirTask) {
  world_.apply(gang_job("sweep", 1, "5s", {{"array", {{"tasks", "0-9"}, {"parallelism", 1}}}}));
  const auto has_ended = [&](int task) {
    const auto array = world_.job("sweep").status.array;
    return array && kube::TaskOutcomes{*array}.of(task) == kube::TaskOutcome::kSucceeded;
  };
  ASSERT_TRUE(world_.run_until([&] { return has_ended(0); }, minutes{1})) << world_.log_tail();
  world_.node("n12").power_off();  // the pods do not end
  for (const char* task : {"0", "9"}) {
    json pod = stray_pod(world_, "sweep");
    pod["metadata"]["name"] = std::string{"sweep-stray-"} + task;
    pod["metadata"]["labels"][std::string{kube::kLabelArrayTask}] = task;
    ASSERT_TRUE(world_.client().create_json<kube::Pod>(kTeam, pod).ok());
  }
  world_.run_for(seconds{10});
  for (const char* task : {"0", "9"}) {
    const auto pod = world_.client().get<kube::Pod>({kTeam, std::string{"sweep-stray-"} + task});
    ASSERT_TRUE(pod.ok());
    EXPECT_TRUE(pod->metadata.deletion_timestamp) << pod->metadata.name << world_.log_tail();
  }
  EXPECT_NE(world_.state("sweep"), "Failed");
}

// Until then its node takes no jobs: it would share its cores with them.
TEST_F(UnseenPods, KeepJobsOffTheirNodeAfterTheEndOfTheirJob) {
  world_.apply(gang_job("short", 1, "5s"));
  ASSERT_TRUE(world_.run_until([&] { return world_.state("short") == "Completed"; }, minutes{1}));
  world_.run_for(seconds{5});
  world_.node("n12").power_off();  // the pod does not end
  ASSERT_TRUE(world_.client().create_json<kube::Pod>(kTeam, stray_pod(world_, "short")).ok());
  world_.run_for(seconds{1});
  world_.apply(gang_job("wide", 5, ""));
  world_.run_for(seconds{10});
  EXPECT_EQ(world_.state("wide"), "Pending");
  const kube::ObjectKey key{kTeam, "short-stray-0"};
  ASSERT_TRUE(world_.client().remove<kube::Pod>(key, {.grace_period = seconds{0}}).ok());
  EXPECT_TRUE(world_.run_until([&] { return world_.state("wide") == "Running"; }, seconds{10}))
      << world_.log_tail();
}

// The job ends in the step in which the pod is seen, so nothing asks for the end of the pod before,
// and nothing more is heard of it.
TEST_F(UnseenPods, AreEndedThoughTheirJobIsCancelledAsTheyAreSeen) {
  world_.apply(gang_job("held", 1, "", {{"control", {{"hold", true}}}}));
  world_.run_for(seconds{5});
  world_.node("n12").power_off();
  ASSERT_TRUE(world_.client().create_json<kube::Pod>(kTeam, stray_pod(world_, "held")).ok());
  world_.patch_job("held", {{"control", {{"cancel", true}}}});
  world_.run_for(seconds{10});
  EXPECT_EQ(world_.state("held"), "Cancelled");
  ASSERT_EQ(world_.pods_of("held").size(), 1U);
  EXPECT_TRUE(world_.pods_of("held").front().metadata.deletion_timestamp) << world_.log_tail();
}

}  // namespace
}  // namespace control
