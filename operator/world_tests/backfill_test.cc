// Backfill as users see it: a job that waits has an expected start and the nodes that are kept for
// it, others run before it only where they do not delay it, and a new leader plans the same again.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

json limited(const std::string& limit) {
  return {{"schedule", {{"timeLimit", limit}}}};
}

// Five nodes of which four are taken for ten minutes, and a job that needs all of them.
class BackfillTest : public ::testing::Test {
 protected:
  BackfillTest() {
    world_.apply(linear_config());
    world_.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
    world_.apply(gang_job("runs", 4, "10m", limited("10m")));
    world_.run_for(seconds{20});
    // It had run for 3 s when it was ready: settle, and the whole second of startedAt.
    runs_until_ = *world_.job("runs").status.start_time - seconds{3} + minutes{10};
    world_.apply(gang_job("wide", 5, "10m", limited("10m")));
    world_.run_for(minutes{1});
  }

  World world_{{}};
  base::Instant runs_until_{};
};

// When the time limit of the job that runs is over.
TEST_F(BackfillTest, AJobThatWaitsSaysWhenAndWhereItWillStart) {
  const kube::JobStatus status = world_.job("wide").status;
  ASSERT_TRUE(status.expected_start_time) << world_.log_tail();
  EXPECT_LE(std::chrono::abs(*status.expected_start_time - runs_until_), seconds{1});
  EXPECT_EQ(status.planned_nodes, "n[12-16]");
  EXPECT_EQ(status.reason, "Resources");
}

// One node is free for some eight minutes. A limit of 5 min fits into that, one of 20 min would
// delay "wide", which was submitted first.
TEST_F(BackfillTest, AShortJobRunsInTheGapALongOneDoesNot) {
  world_.apply(gang_job("long", 1, "20m", limited("20m")));
  world_.apply(gang_job("short", 1, "2m", limited("5m")));
  world_.run_for(minutes{1});
  EXPECT_EQ(world_.state("short"), "Running") << world_.log_tail();
  EXPECT_EQ(world_.state("long"), "Pending");
  EXPECT_EQ(world_.process().loop().counters().backfilled_starts, 1);
  EXPECT_LE(*world_.job("wide").status.expected_start_time, runs_until_ + seconds{1});
  ASSERT_TRUE(world_.run_until([&] { return world_.state("wide") == "Running"; }, minutes{15}));
  const kube::JobStatus wide = world_.job("wide").status;
  EXPECT_FALSE(wide.expected_start_time);
  EXPECT_EQ(wide.planned_nodes, "");
  EXPECT_LE(world_.clock().wall(), runs_until_ + seconds{5});
  const StartErrors& errors = world_.process().loop().counters().start_errors;
  EXPECT_LE(std::abs(errors.sum), 5) << "of the starts that were expected";
  expect_no_violations(world_);
}

// The plan is not stored: a new leader makes it again, without a write if it is the same.
TEST_F(BackfillTest, ANewLeaderPlansTheSame) {
  const kube::Job before = world_.job("wide");
  world_.restart_operator();
  world_.run_for(minutes{2});
  const kube::Job after = world_.job("wide");
  EXPECT_EQ(after.status.expected_start_time, before.status.expected_start_time);
  EXPECT_EQ(after.status.planned_nodes, before.status.planned_nodes);
  EXPECT_EQ(after.metadata.resource_version, before.metadata.resource_version);
}

// A held job is not planned for, so an old estimate must go.
TEST_F(BackfillTest, AHeldJobExpectsNothing) {
  world_.patch_job("wide", {{"control", {{"hold", true}}}});
  world_.run_for(minutes{2});
  EXPECT_FALSE(world_.job("wide").status.expected_start_time);
  world_.patch_job("wide", {{"control", {{"hold", false}}}});
  world_.run_for(minutes{2});
  EXPECT_TRUE(world_.job("wide").status.expected_start_time);
}

// The same gap; without backfill the head of the queue is waited for, however short the others are.
// When they will start is estimated all the same.
TEST_F(BackfillTest, BuiltinStartsNothingOutOfTurn) {
  json config = linear_config();
  config["spec"]["schedulerType"] = "Builtin";
  world_.apply(config);
  world_.apply(gang_job("short", 1, "1m", limited("5m")));
  world_.run_for(minutes{3});
  EXPECT_EQ(world_.state("short"), "Pending");
  const auto wide = world_.job("wide").status.expected_start_time;
  const auto behind = world_.job("short").status.expected_start_time;
  ASSERT_TRUE(wide && behind) << world_.log_tail();
  EXPECT_LE(std::chrono::abs(*wide - runs_until_), seconds{1});
  EXPECT_EQ(*behind, *wide + minutes{10}) << "when the time limit of wide is over";
}

// An estimate that moves a little is not written, however often the plan is made.
TEST_F(BackfillTest, APlanThatStaysCostsNoWrites) {
  for (int i = 0; i < 20; ++i) {
    world_.apply(gang_job("behind-" + std::to_string(i), 5, "1m", limited("10m")));
  }
  world_.run_for(minutes{3});
  EXPECT_TRUE(world_.job("behind-19").status.expected_start_time) << world_.log_tail();
  const std::int64_t before = world_.process().loop().counters().status_writes;
  world_.run_for(minutes{4});
  EXPECT_LE(world_.process().loop().counters().status_writes, before + 4) << "of the one that runs";
}

}  // namespace
}  // namespace control
