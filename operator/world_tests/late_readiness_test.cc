// Readiness for which nothing waits: where no job has to be stopped for another the write of it
// goes with others, and a leader that does not find it stored comes to the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

class LateReadinessTest : public testing::Test {
 protected:
  LateReadinessTest() {
    world.apply(linear_config());
    world.apply(
        partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Exclusive"}}}})));
    world.run_for(seconds{2});
  }
  // Waits until its pods run; no status of a Job is stored from then on.
  void run_unheard(const json& job) {
    world.apply(job);
    const std::string name = job["metadata"]["name"];
    ASSERT_TRUE(world.run_until([&] { return world.ran(name) > base::Duration{0}; }, seconds{10}))
        << world.log_tail();
    world.server().inject({.verb = "patch",
                           .resource = "jobs",
                           .subresource = "status",
                           .user_agent = "operator",
                           .code = 503,
                           .count = 100'000});
  }
  std::string ready(const std::string& job) const {
    return world.condition("Job", job, "Ready").substr(0, 5);
  }
  base::Duration run_time(const std::string& job) const {
    return world.job(job).status.run_time.value_or(kube::RunTime{}).elapsed;
  }

  World world{{}};
};

// It has no other pods, no other start, and no more time than it is allowed.
TEST_F(LateReadinessTest, ANewLeaderThatDoesNotFindItGoesOn) {
  run_unheard(gang_job("one", 2, "", {{"schedule", {{"timeLimit", "30s"}}}}));
  world.run_for(seconds{12});
  ASSERT_EQ(ready("one"), "False");
  world.restart_operator();
  world.server().clear_faults();
  ASSERT_TRUE(world.run_until([&] { return ready("one") == "True:"; }, seconds{5}))
      << world.log_tail();
  EXPECT_GE(run_time("one"), seconds{11}) << "from its first container on";
  EXPECT_EQ(world.pods_of("one").size(), 2U);
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Timeout"; }, seconds{40}));
  EXPECT_EQ(world.job("one").status.starts, 1);
  EXPECT_GE(run_time("one"), seconds{29});
  EXPECT_LE(run_time("one"), seconds{33});
  expect_no_violations(world);
}

// The stored end has the times of its readiness, also if another leader writes it.
TEST_F(LateReadinessTest, AnEndBringsIt) {
  for (const bool crashes : {false, true}) {
    const std::string name = crashes ? "crashed" : "one";
    run_unheard(gang_job(name, 2, "8s"));
    world.run_for(seconds{20});
    ASSERT_EQ(ready(name), "False");
    if (crashes) world.restart_operator();
    world.server().clear_faults();
    ASSERT_TRUE(world.run_until([&] { return world.state(name) == "Completed"; }, seconds{20}))
        << world.log_tail();
    const kube::JobStatus status = world.job(name).status;
    EXPECT_TRUE(status.start_time.has_value());
    EXPECT_GE(run_time(name), seconds{7});
    EXPECT_LE(run_time(name), seconds{10});
    EXPECT_EQ(status.starts, 1);
  }
  expect_no_violations(world);
}

// A timetable lists a job when one is to stand still, and then its readiness is no longer late: a
// leader that finds the one finds the other.
TEST_F(LateReadinessTest, NoTimetableListsAJobBeforeItIsStored) {
  run_unheard(gang_job("one", 2, ""));
  world.run_for(seconds{5});
  world.patch_job("one", {{"control", {{"suspend", true}}}});
  world.run_for(seconds{20});
  ASSERT_EQ(ready("one"), "False");
  for (const char* node : {"n12", "n13"}) {
    EXPECT_TRUE(world.timetable(node).spec.pods.empty()) << node << world.log_tail();
  }
  world.server().clear_faults();
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Suspended"; }, seconds{30}))
      << world.log_tail();
  EXPECT_EQ(ready("one"), "True:");
  const base::Duration ran = world.ran("one");
  world.run_for(seconds{10});
  EXPECT_LE(world.ran("one"), ran + seconds{2});
  world.patch_job("one", {{"control", {{"suspend", false}}}});
  EXPECT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, seconds{30}));
  expect_no_violations(world);
}

// Short jobs of one pod, and an API server that takes 300 ms for each request, 16 at a time: start,
// pod and end are three requests, and the readiness of most is none.
TEST(LateReadiness, OfShortJobsIsMostlyNoWriteWhileOthersWait) {
  constexpr int kJobs = 400;
  World world{{.nodes = {"n1", "n2"}, .cpus = 100, .pods_per_node = 200}};
  world.tick = std::chrono::milliseconds{100};
  json config = linear_config();
  config["spec"]["select"] = {{"type", "ConsTres"}, {"memory", false}};
  world.apply(config);
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[1-2]"}}}, {"default", true}}));
  world.run_for(seconds{5});
  world.process().writer().be_slow(world.clock(), std::chrono::milliseconds{300});
  for (int i = 0; i < kJobs; ++i) {
    world.apply(gang_job("job-" + std::to_string(i), 1, "6s",
                         {{"resources", {{"tasks", 1}, {"cpusPerTask", 1}}}}));
  }
  const auto written = [&](WritePoint point) {
    return std::ranges::count(world.process().writer().points(), point);
  };
  const auto began = world.clock().wall();
  ASSERT_TRUE(world.run_until([&] { return written(WritePoint::kFinal) == kJobs; }, minutes{5}));
  RecordProperty("readiness", static_cast<int>(written(WritePoint::kReady)));
  RecordProperty("statuses", static_cast<int>(written(WritePoint::kStatus)));
  RecordProperty("seconds", static_cast<int>((world.clock().wall() - began) / seconds{1}));
  EXPECT_EQ(written(WritePoint::kStart), kJobs);
  EXPECT_LE(written(WritePoint::kReady), kJobs / 2);
}

}  // namespace
}  // namespace control
