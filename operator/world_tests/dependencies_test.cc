// Jobs that wait for others (spec.dependency), over changes of leaders.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

json after(const std::string& type, const std::string& job) {
  return {{"dependency", {{"terms", {{{"type", type}, {"jobName", job}}}}}}};
}

class DependencyTest : public ::testing::Test {
 protected:
  DependencyTest() : world{{}} {
    world.apply(linear_config());
    world.apply(partition("batch", force()));
  }
  std::string term(const std::string& job) const {
    const auto terms = world.job(job).status.dependency;
    return terms.empty() ? "none" : std::string{to_string(terms.front().state)};
  }
  std::string reason(const std::string& job) const { return world.job(job).status.reason; }
  void cancel(const std::string& job) { world.patch_job(job, {{"control", {{"cancel", true}}}}); }
  bool ends_as(const std::string& job, const std::string& state) {
    return world.run_until([&] { return world.state(job) == state; }, minutes{2});
  }

  World world;
};

// A manifest may have the jobs in any order: a name is waited for until a job has it.
TEST_F(DependencyTest, AJobWaitsForANameThatComesLater) {
  world.apply(gang_job("second", 1, "5s", after("AfterOK", "first")));
  world.run_for(seconds{5});
  EXPECT_EQ(reason("second"), "Dependency") << world.log_tail();
  EXPECT_EQ(world.job("second").status.message,
            "waits for a job that does not exist yet to succeed");
  world.apply(gang_job("first", 1, "20s"));
  world.run_for(seconds{10});
  EXPECT_EQ(world.job("second").status.message,
            "waits for job " + std::to_string(*world.job("first").status.job_id) + " to succeed");
  EXPECT_EQ(world.state("first"), "Running");
  EXPECT_EQ(world.pods_of("second").size(), 0U);
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
  EXPECT_EQ(term("second"), "Fulfilled");
  expect_no_violations(world);
}

TEST_F(DependencyTest, WhatCanNeverBeIsSaidAndMayCancelTheJob) {
  world.apply(gang_job("first", 1, ""));
  world.apply(gang_job("waits", 1, "5s", after("AfterOK", "first")));
  json ends = after("AfterOK", "first");
  ends["dependency"]["ifNeverSatisfied"] = "Cancel";
  world.apply(gang_job("ends", 1, "5s", ends));
  world.run_for(seconds{5});
  cancel("first");
  ASSERT_TRUE(ends_as("ends", "Cancelled")) << world.log_tail();
  EXPECT_EQ(reason("ends"), "DependencyNeverSatisfied");
  EXPECT_EQ(reason("waits"), "DependencyNeverSatisfied");
  EXPECT_EQ(term("waits"), "Failed");
  // The user mends it.
  world.patch_job("waits", after("AfterNotOK", "first"));
  ASSERT_TRUE(ends_as("waits", "Completed")) << world.log_tail();
}

// The job that it waits for is gone when it is submitted again: to the scheduler that is a job of
// which nothing is known.
TEST_F(DependencyTest, WhatCanNeverBeStaysSoWhenTheJobIsRefusedForAWhile) {
  world.apply(gang_job("first", 1, ""));
  world.apply(gang_job("waits", 2, "5s", after("AfterOK", "first")));
  world.apply(gang_job("goes", 2, "5s", after("AfterNotOK", "first")));
  world.patch_job("goes", {{"control", {{"hold", true}}}});
  world.run_for(seconds{5});
  cancel("first");
  ASSERT_TRUE(world.run_until([&] { return term("waits") == "Failed"; }, minutes{1}));
  world.remove_job("first");
  world.run_for(seconds{5});
  world.apply(partition("batch", force("n12")));
  world.run_for(seconds{5});
  EXPECT_EQ(reason("waits"), "NotAccepted");
  EXPECT_EQ(reason("goes"), "NotAccepted");
  world.apply(partition("batch", force()));
  EXPECT_TRUE(
      world.run_until([&] { return reason("waits") == "DependencyNeverSatisfied"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(term("waits"), "Failed");
  world.patch_job("goes", {{"control", {{"hold", false}}}});
  EXPECT_TRUE(ends_as("goes", "Completed")) << world.log_tail();
  EXPECT_EQ(world.pods_of("waits").size(), 0U);
}

// Jobs of one namespace know nothing of those of another.
TEST_F(DependencyTest, AJobOfAnotherNamespaceIsNotWaitedFor) {
  const json team{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "team-b"}}}};
  ASSERT_TRUE(world.client().call_json(kube::Method::kPost, "/api/v1/namespaces", &team).ok());
  json foreign = gang_job("foreign", 1, "");
  foreign["metadata"]["namespace"] = "team-b";
  const auto made = world.client().call_json(
      kube::Method::kPost, "/apis/kubegang.io/v1alpha1/namespaces/team-b/jobs", &foreign);
  ASSERT_TRUE(made.ok()) << made.error().message;
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, "5s",
                       {{"dependency", {{"terms", {{{"type", "AfterOK"}, {"jobID", 1}}}}}}}));
  world.run_for(seconds{5});
  EXPECT_EQ(reason("waits"), "NotAccepted");
  EXPECT_EQ(world.job("waits").status.message,
            "spec.dependency.terms[0].jobID: job 1 is of another namespace; a job can wait for "
            "jobs of its own");
}

TEST_F(DependencyTest, ACircleIsRefused) {
  world.apply(gang_job("first", 5, ""));
  world.apply(gang_job("second", 5, "5s", after("AfterOK", "first")));
  world.apply(gang_job("third", 5, "5s", after("AfterOK", "second")));
  world.run_for(seconds{5});
  world.patch_job("second", after("AfterOK", "third"));
  world.run_for(seconds{5});
  EXPECT_NE(world.condition("Job", "second", "Accepted").find("so this job cannot wait for it"),
            std::string::npos)
      << world.condition("Job", "second", "Accepted");
  // It goes on as it was.
  world.remove_job("first");
  world.run_for(seconds{40});
  EXPECT_EQ(reason("second"), "DependencyNeverSatisfied");
}

// The job whose start it waits for is ended for it in the step in which it starts. Each of the two
// writes would wait for the other one.
TEST_F(DependencyTest, AJobMayPreemptTheOneWhoseStartItWaitsFor) {
  json config = linear_config();
  config["spec"]["preemptMode"] = "Requeue";
  config["spec"]["requeue"] = {{"delay", "2s"}, {"maxBatch", 100}};
  world.apply(config);
  world.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                 {"priorityTier", 2},
                                 {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}}));
  json more = after("After", "first");
  more["partitions"] = json::array({"high"});
  world.apply(gang_job("second", 5, "5s", more));
  world.run_for(seconds{5});
  EXPECT_EQ(reason("second"), "Dependency") << world.log_tail();
  world.apply(gang_job("first", 5, "10s"));
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
  ASSERT_TRUE(ends_as("first", "Completed")) << world.log_tail();
  EXPECT_EQ(world.job("first").status.starts, 2);
  expect_no_violations(world);
}

// The next leader reads what became of the terms; the other job's object may be gone by then.
TEST_F(DependencyTest, ANewLeaderKnowsWhatHasEnded) {
  world.apply(gang_job("first", 1, "5s"));
  world.apply(gang_job("second", 1, "5s", after("AfterOK", "first")));
  world.patch_job("second", {{"control", {{"hold", true}}}});
  ASSERT_TRUE(ends_as("first", "Completed"));
  world.run_for(seconds{5});
  EXPECT_EQ(term("second"), "Fulfilled");
  world.remove_job("first");
  world.restart_operator();
  world.run_for(seconds{5});
  // Another job of that name is not meant.
  world.apply(gang_job("first", 1, ""));
  world.patch_job("second", {{"control", {{"hold", false}}}});
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
  expect_no_violations(world);
}

// A crash between the end of a job and what is stored of its dependants: the next leader learns it
// from the object of the job.
TEST_F(DependencyTest, ACrashAtAnEndLosesNoDependant) {
  world.apply(gang_job("first", 1, "5s"));
  world.apply(gang_job("second", 1, "5s", after("AfterOK", "first")));
  ASSERT_TRUE(world.run_until([&] { return world.state("first") == "Running"; }, seconds{10}));
  world.crash_after(WritePoint::kFinal);
  ASSERT_TRUE(world.run_until([&] { return world.crashes() == 1; }, minutes{1}));
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
  expect_no_violations(world);
}

// Rule 5 of CommitGate: as long as the end of the first job cannot be stored, the other one does
// not start, since the next leader might see another end.
TEST_F(DependencyTest, AnEndIsStoredBeforeWhatFollowsFromIt) {
  world.apply(gang_job("first", 1, "5s"));
  world.apply(gang_job("second", 1, "5s", after("AfterOK", "first")));
  ASSERT_TRUE(world.run_until([&] { return world.pods_of("first").size() == 1; }, seconds{10}));
  world.run_for(seconds{4});
  world.server().inject({.verb = "patch",
                         .resource = "jobs",
                         .subresource = "status",
                         .name = "first",
                         .user_agent = "operator",
                         .code = 500,
                         .count = 1'000'000});
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("first"), "Running");
  EXPECT_EQ(world.pods_of("second").size(), 0U);
  EXPECT_EQ(term("second"), "Unfulfilled");
  world.server().clear_faults();
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
}

// Deleted without a leader: how it ended is not known, so it has not succeeded.
TEST_F(DependencyTest, AJobThatIsGoneUnseenHasNotSucceeded) {
  world.apply(gang_job("first", 1, ""));
  world.apply(gang_job("second", 1, "5s", after("AfterOK", "first")));
  world.apply(gang_job("third", 1, "5s", after("AfterAny", "first")));
  world.run_for(seconds{5});
  world.take_process().reset();
  world.remove_job("first");
  world.restart_operator();
  ASSERT_TRUE(ends_as("third", "Completed")) << world.log_tail();
  EXPECT_EQ(reason("second"), "DependencyNeverSatisfied");
}

// A job that waits for a job whose spec is mended goes on waiting, and hears of the end of one that
// never was accepted.
TEST_F(DependencyTest, AJobThatIsNotAcceptedIsWaitedFor) {
  world.apply(gang_job("first", 99, "5s"));
  world.run_for(seconds{5});
  ASSERT_EQ(reason("first"), "NotAccepted");
  world.apply(gang_job("second", 1, "5s", after("AfterAny", "first")));
  world.run_for(seconds{10});
  EXPECT_EQ(reason("second"), "Dependency");
  world.restart_operator();
  world.run_for(seconds{10});
  EXPECT_EQ(reason("second"), "Dependency");
  cancel("first");
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
}

// The same of a task of an array: which tasks that has is not known before it is accepted. The two
// may be accepted in one step, the one that waits first.
TEST_F(DependencyTest, ATaskOfAnArrayThatIsNotAcceptedIsWaitedFor) {
  json more = after("AfterOK", "first");
  more["dependency"]["terms"][0]["task"] = 1;
  world.apply(gang_job("second", 1, "5s", more));
  world.run_for(seconds{5});
  json cannot_start{{"array", {{"tasks", "0-1"}}}};
  cannot_start["partitions"] = json::array({"later"});
  world.apply(gang_job("first", 1, "5s", cannot_start));
  world.run_for(seconds{10});
  EXPECT_EQ(reason("second"), "Dependency") << world.log_tail();
  world.restart_operator();
  world.run_for(seconds{10});
  EXPECT_EQ(reason("second"), "Dependency") << world.log_tail();
  json later = force();
  later["default"] = false;
  world.apply(partition("later", later));
  ASSERT_TRUE(ends_as("first", "Completed")) << world.log_tail();
  ASSERT_TRUE(ends_as("second", "Completed")) << world.log_tail();
}

// The record of an array that has ended is made again for an edit that no leader has seen.
TEST_F(DependencyTest, TasksOfAnArrayThatWasEditedAfterItsEndAreKnown) {
  json array{{"array", {{"tasks", "0-1"}}}};
  world.apply(gang_job("first", 1, "5s", array));
  ASSERT_TRUE(ends_as("first", "Completed")) << world.log_tail();
  world.patch_job("first", {{"control", {{"tasks", {{{"tasks", "1"}, {"hold", true}}}}}}});
  for (const int task : {1, 7}) {
    json more = after("AfterNotOK", "first");
    more["dependency"]["terms"][0]["task"] = task;
    world.apply(gang_job("after-" + std::to_string(task), 1, "5s", more));
  }
  world.restart_operator();
  world.run_for(seconds{10});
  EXPECT_EQ(reason("after-1"), "DependencyNeverSatisfied") << world.log_tail();
  EXPECT_EQ(world.state("after-7"), "Completed") << "there is no such task";
}

}  // namespace
}  // namespace control
