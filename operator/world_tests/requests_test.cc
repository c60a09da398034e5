// Requests of the operator to the API server: how many, and which go first.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/api/time_format.h"
#include "operator/testing/batch_job_fixture.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// The answer to the write that commits a start has the template: one request less for each job. At
// thousands of starts it is the API server that sets the pace.
TEST(Operator, AStartReadsItsTemplateOnlyAfterARestart) {
  const auto reads = [](World& world) {
    const auto& points = world.process().writer().points();
    return std::count(points.begin(), points.end(), WritePoint::kTemplateRead);
  };
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("one", 3, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.pods_of("one").size(), 3U) << world.log_tail();
  EXPECT_EQ(reads(world), 0);
  world.crash_after(WritePoint::kStart);
  world.apply(gang_job("two", 2, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.crashes(), 1);
  EXPECT_EQ(world.pods_of("two").size(), 2U) << world.log_tail();
  // The answer to the commit died with the old leader, so the new one must read the template.
  EXPECT_EQ(reads(world), 1);
  expect_no_violations(world);
}

// Something between operator and API server answers one write, and then the API server itself does
// while its CRDs are set up: a Job that exists is written to again, soon.
TEST(Operator, AStatusThatMeetsNoObjectIsWrittenIfTheObjectIsThere) {
  for (const std::string text : {"404 page not found\n", ""}) {
    World world{{}};
    world.apply(linear_config());
    world.apply(partition("batch", force()));
    world.apply(gang_job("short", 1, "5s"));
    ASSERT_TRUE(world.run_until([&] { return world.state("short") == "Running"; }, seconds{5}));
    world.run_for(seconds{3});
    world.server().inject({.verb = "patch",
                           .resource = "jobs",
                           .subresource = "status",
                           .user_agent = "operator",
                           .code = 404,
                           .text = text,
                           .count = 1'000});
    world.run_for(seconds{3});
    EXPECT_EQ(world.state("short"), "Running");
    world.server().clear_faults();
    EXPECT_TRUE(world.run_until([&] { return world.state("short") == "Completed"; }, seconds{20}))
        << world.log_tail();
    expect_no_violations(world);
  }
}

// Jobs that have ended stay until their time to live is over: many of them. A leader that wrote to
// each of them once, or listed them for each new job, would be slower with each day that a cluster
// has run.
TEST(Operator, AJobsLifeTakesTheSameRequestsBesideThousandsOfFinishedJobs) {
  const auto requests_of_a_life = [](int finished_count) {
    World world{{}};
    world.apply(linear_config());
    world.apply(partition("batch", force()));
    for (int i = 0; i < finished_count; ++i) {
      json finished = gang_job("old-" + std::to_string(i), 1, "");
      finished["status"] = {{"state", "Completed"}, {"jobID", i + 1}, {"exitCode", 0}};
      world.apply(finished);
    }
    world.restart_operator();
    world.run_for(minutes{3});
    world.server().clear_request_log();
    world.apply(gang_job("new", 2, "20s"));
    world.run_for(minutes{3});
    EXPECT_EQ(world.state("new"), "Completed") << world.log_tail();
    return world.server().request_counts();
  };
  const auto counts_as_text = [](const auto& counts) {
    std::string text;
    for (const auto& [kind, count] : counts) {
      text += kind.verb + " " + kind.resource + "/" + kind.subresource + " " +
              std::to_string(count) + "\n";
    }
    return text;
  };
  // Not one request more with 2000 of them.
  EXPECT_EQ(counts_as_text(requests_of_a_life(1)), counts_as_text(requests_of_a_life(2000)));
}

// The reasons of 60 jobs change while 40 others are submitted and the API server takes its time. In
// the end all reasons are right: what gives way is late, and not lost.
TEST(Operator, WhatOnlyInformsGivesWayToWhatHasToBeWritten) {
  World world{{}};
  world.apply(linear_config());
  const json alone = {{"overSubscribe", {{"policy", "Never"}}}};
  world.apply(partition("batch", force("n[12-16]", alone)));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  const auto name = [](const char* kind, int i) { return kind + std::to_string(i); };
  for (int i = 0; i < 60; ++i) world.apply(gang_job(name("waits-", i), 5, ""));
  world.run_for(minutes{3});
  for (int i = 0; i < 40; ++i) world.apply(gang_job(name("new-", i), 5, ""));
  json down = force("n[12-16]", alone);
  down["state"] = "Down";
  world.apply(partition("batch", down));
  OperatorProcess& process = world.process();
  process.pump_without_writes();
  const std::size_t at_once = process.writer().queued_count();
  // The new jobs' first statuses must be written; the changed reasons only inform.
  EXPECT_GE(at_once, 40U);
  for (int i = 0; i < 5; ++i) {
    world.clock().advance(seconds{1});
    process.pump_without_writes();
  }
  // Five seconds at two per second, and one token that was left.
  EXPECT_LE(process.writer().queued_count(), at_once + 11) << "two per second";
  world.run_for(minutes{3});
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(world.job(name("waits-", i)).status.reason, "PartitionDown") << i;
  }
}

// Returns requests by kind, as "patch jobs/status 2", without reads and writes that only inform.
std::string requests(World& world) {
  std::string text;
  for (const auto& [kind, count] : world.server().request_counts()) {
    if (kind.verb == "get" || kind.verb == "list" || kind.verb == "watch") continue;
    if (kind.resource == "partitions" || kind.resource == "schedulerconfigs") continue;
    text += (text.empty() ? "" : ", ") + kind.verb + " " + kind.resource +
            (kind.subresource.empty() ? "" : "/") + kind.subresource + " " + std::to_string(count);
  }
  return text;
}

// The table of docs/design/performance.md; the pods' statuses are their kubelet's. Two writes of
// the status: the start and the readiness. "create jobs" is the user's own request.
TEST(Operator, AStartOnNodesWithoutTurnsTakesTwoRequestsAndOneForEachPod) {
  World world{{}};
  world.apply(linear_config());
  world.apply(
      partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Exclusive"}}}})));
  world.apply(gang_job("first", 1, "1s"));
  world.run_for(seconds{10});
  const auto of_start = [&world](const std::string& name, int nodes) {
    world.server().clear_request_log();
    world.apply(gang_job(name, nodes, "", {{"network", "None"}}));
    world.run_for(seconds{10});
    EXPECT_EQ(world.condition("Job", name, "Ready").substr(0, 4), "True") << world.log_tail();
    return requests(world);
  };
  EXPECT_EQ(of_start("one", 1),
            "create jobs 1, create pods 1, patch jobs/status 2, patch pods/status 1");
  EXPECT_EQ(of_start("three", 3),
            "create jobs 1, create pods 3, patch jobs/status 2, patch pods/status 3");
}

// The rest of the table: what becomes of jobs after their start, and of one that waits. The trial
// of a pod counts as "create pods". Each further request here is one for every job of a cluster.
TEST(Operator, TheRestOfALifeTakesTheseRequests) {
  World world{{}};
  world.apply(linear_config());
  world.apply(
      partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Exclusive"}}}})));
  const json alone{{"network", "None"}};
  world.apply(gang_job("completes", 1, "10s", alone));
  world.apply(gang_job("cancelled", 2, "", alone));
  world.apply(gang_job("runs", 2, "", alone));
  world.run_for(seconds{8});
  const auto of = [&world](const std::string& name, const char* state) {
    EXPECT_TRUE(world.run_until([&] { return world.state(name) == state; }, seconds{30})) << name;
    world.run_for(seconds{5});
    return requests(world);
  };
  world.server().clear_request_log();
  EXPECT_EQ(of("completes", "Completed"), "patch jobs/status 1, patch pods/status 1");
  world.server().clear_request_log();
  world.patch_job("cancelled", {{"control", {{"cancel", true}}}});
  EXPECT_EQ(of("cancelled", "Cancelled"),
            "delete pods 2, delete pods 2, patch jobs 1, patch jobs/status 2, patch pods/status 2")
      << "the operator asks, kubelet reports the ends and confirms";
  world.server().clear_request_log();
  world.apply(gang_job("waits", 5, "", alone));
  EXPECT_EQ(of("waits", "Pending"), "create jobs 1, create pods 1, patch jobs/status 1")
      << "why, and whether its pods would be taken";
}

std::string name_of(const char* kind, int i) {
  return kind + std::to_string(i);
}

// 96 cores on 12 nodes, eight on one more, no turns, and an API server that takes 100 ms for each
// request, 16 of them at a time: 160 in a second.
struct SlowApiServer : testing::Test {
  static constexpr int kCores = 96;

  SlowApiServer() : world{{.nodes = node_names()}} {
    world.tick = std::chrono::milliseconds{100};
    world.apply(partition("batch", {{"nodes", {{"hostlist", "n[1-12]"}}}, {"default", true}}));
    world.apply(partition("apart", {{"nodes", {{"hostlist", "n13"}}}}));
    world.run_for(seconds{5});
    world.process().writer().be_slow(world.clock(), std::chrono::milliseconds{100});
  }
  static std::vector<std::string> node_names() {
    std::vector<std::string> names;
    for (int i = 1; i <= 13; ++i) names.push_back(name_of("n", i));
    return names;
  }
  // Makes a job of one core, so that 96 of them fill the partition.
  static json core_job(const std::string& name, const char* partition = "batch") {
    return gang_job(
        name, 1, "",
        {{"partitions", json::array({partition})},
         {"resources", {{"tasksPerNode", 1}, {"cpusPerTask", 1}, {"memoryPerNode", "16Mi"}}}});
  }
  void submit(int count) {
    for (int i = 0; i < count; ++i) world.apply(core_job(name_of("job-", i)));
  }
  // Counts starts that the scheduler has decided, also if they are not written yet.
  std::int64_t starts() { return world.process().loop().counters().starts; }
  std::size_t queued() { return world.process().writer().queued_count(); }
  std::ptrdiff_t written(WritePoint point) {
    const auto& points = world.process().writer().points();
    return std::count(points.begin(), points.end(), point);
  }

  World world;
};

// All 96 cores are given away in the first pass, whatever has been written by then. A job for the
// other partition is decided in the step after its submission. Free cores that wait for writes of
// other jobs would stand idle for seconds.
TEST_F(SlowApiServer, DelaysNoDecision) {
  submit(150);
  world.run_until([&] { return starts() > 0; }, seconds{5});
  EXPECT_EQ(starts(), kCores) << "all at once";
  EXPECT_EQ(written(WritePoint::kStart), 0);
  world.apply(core_job("late", "apart"));
  world.run_for(world.tick);
  EXPECT_EQ(starts(), kCores + 1) << "though nearly nothing is written yet" << world.log_tail();
  EXPECT_LT(written(WritePoint::kStart), 40);
  EXPECT_TRUE(world.run_until([&] { return world.state("late") == "Running"; }, seconds{10}))
      << world.log_tail();
}

// The loop hands over only what can be written until its next step, so the line stays short however
// much there is to write. A long line would be written in its old order, whatever had become urgent
// meanwhile.
TEST_F(SlowApiServer, MakesNoLongLineOfWrites) {
  std::size_t longest = 0;
  submit(250);
  for (int i = 0; i < 50; ++i) {
    world.run_for(world.tick);
    longest = std::max(longest, queued());
  }
  EXPECT_LE(longest, 160U) << "what is written in a second";
  for (int i = 0; i < 250; ++i) {
    const std::string state = world.state(name_of("job-", i));
    // In the order of submission.
    EXPECT_EQ(state, i < kCores ? "Running" : "Pending") << i;
  }
}

// Most of the jobs that start are canceled before their pods are made. Some starts stand in the
// writer's line already. A write without use takes the place of one for which another job
// waits.
TEST_F(SlowApiServer, WritesNothingThatIsNotTrueAnyMore) {
  constexpr int kLeft = 16;
  submit(kCores);
  world.run_until([&] { return starts() == kCores; }, seconds{5});
  for (int i = kLeft; i < kCores; ++i) {
    world.patch_job(name_of("job-", i), {{"control", {{"cancel", true}}}});
  }
  world.run_for(seconds{20});
  for (int i = 0; i < kCores; ++i) {
    EXPECT_EQ(world.state(name_of("job-", i)), i < kLeft ? "Running" : "Cancelled") << i;
  }
  // A start that was not written before its job was canceled is not written at all: fewer than the
  // 96 that were decided. No end is missing.
  EXPECT_LE(written(WritePoint::kStart), 80);
  // A few pods may be with the writer when their job is canceled.
  EXPECT_LE(written(WritePoint::kPodCreate), kLeft + 5);
  EXPECT_EQ(written(WritePoint::kFinal), kCores - kLeft);
}

// The time to live of 1,600 jobs ends at once, as after an absence of the operator: ten seconds of
// writes. A job that is submitted then starts as if they were not there, and they go nevertheless.
TEST_F(SlowApiServer, StartsJobsWhileThousandsOfFinishedOnesAreDeleted) {
  constexpr int kFinished = 1'600;
  for (int i = 0; i < kFinished; ++i) {
    json job = core_job(name_of("done-", i));
    job["spec"]["lifecycle"] = {{"ttlAfterFinished", "3s"}};
    job["status"] = {{"state", "Completed"},
                     {"observedGeneration", 1},
                     {"endTime", kube::format_time(world.clock().wall())}};
    world.apply(job);
  }
  world.run_for(seconds{2});
  const auto finished = [&] { return world.process().loop().counters().jobs_finished; };
  ASSERT_EQ(finished(), kFinished);
  world.run_for(seconds{2});
  EXPECT_LE(queued(), 160U) << "what is written in a second";
  world.apply(core_job("late"));
  EXPECT_TRUE(world.run_until([&] { return world.state("late") == "Running"; }, seconds{3}))
      << world.log_tail();
  EXPECT_TRUE(world.run_until([&] { return finished() == 0; }, seconds{20})) << finished();
}

// The same for 800 batch Jobs that are created at once: for each a kubegang Job is made.
TEST_F(SlowApiServer, StartsJobsWhileHundredsOfBatchJobsWaitForTheirJobs) {
  constexpr int kBatchJobs = 800;
  for (int i = 0; i < kBatchJobs; ++i) {
    const json object = make_batch_job(name_of("batch-", i), {}, "", nullptr, nullptr);
    ASSERT_TRUE(world.client().create_json<kube::BatchJob>(kTeam, object).ok());
  }
  world.run_for(world.tick);
  EXPECT_LE(queued(), 160U) << "what is written in a second";
  world.apply(core_job("late", "apart"));
  EXPECT_TRUE(world.run_until([&] { return world.state("late") == "Running"; }, seconds{3}))
      << world.log_tail();
  EXPECT_TRUE(
      world.run_until([&] { return written(WritePoint::kJobCreate) == kBatchJobs; }, seconds{30}));
}

// A gang of 96 pods is canceled when a few of them are made. Each pod more would have to be
// deleted again, by the same slow server.
TEST_F(SlowApiServer, MakesNoMorePodsOfAGangThatEnds) {
  world.apply(gang_job(
      "wide", 12, "",
      {{"podPolicy", "PerTask"},
       {"resources", {{"tasksPerNode", 8}, {"cpusPerTask", 1}, {"memoryPerNode", "1Gi"}}}}));
  world.run_until([&] { return written(WritePoint::kPodCreate) > 0; }, seconds{10});
  world.patch_job("wide", {{"control", {{"cancel", true}}}});
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("wide"), "Cancelled") << world.log_tail();
  EXPECT_LT(written(WritePoint::kPodCreate), kCores);
  EXPECT_EQ(written(WritePoint::kPodDelete), written(WritePoint::kPodCreate));
  expect_no_violations(world);
}

}  // namespace
}  // namespace control
