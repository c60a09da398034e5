// Licenses as users and administrators see them: a job waits until one is given back, a new leader
// counts those of the jobs that run, and a number that is lowered below what is in use is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

json with_matlab(int count) {
  return {{"resources", {{"licenses", {{"matlab", count}}}}}};
}

class LicensesTest : public ::testing::Test {
 protected:
  LicensesTest() {
    there_are(2);
    world_.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
    world_.apply(gang_job("first", 1, "10m", with_matlab(2)));
    world_.run_for(seconds{20});
    world_.apply(gang_job("second", 1, "1m", with_matlab(1)));
    world_.run_for(seconds{20});
  }
  void there_are(int count) {
    json config = linear_config();
    config["spec"]["licenses"] = {{"matlab", count}};
    world_.apply(config);
  }
  std::string exceeded() {
    return world_.condition("SchedulerConfig", "default", "LicensesExceeded");
  }

  World world_{{}};
};

TEST_F(LicensesTest, AJobWaitsForThem) {
  EXPECT_EQ(world_.state("first"), "Running") << world_.log_tail();
  EXPECT_EQ(world_.state("second"), "Pending");
  EXPECT_EQ(world_.job("second").status.reason, "Licenses");
  world_.patch_job("first", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{3}))
      << world_.log_tail();
  expect_no_violations(world_);
}

TEST_F(LicensesTest, ANewLeaderCountsThoseOfJobsThatRun) {
  world_.restart_operator();
  world_.run_for(minutes{1});
  EXPECT_EQ(world_.state("first"), "Running");
  EXPECT_EQ(world_.state("second"), "Pending");
  EXPECT_EQ(world_.job("second").status.reason, "Licenses");
  there_are(3);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{3}))
      << world_.log_tail();
}

TEST_F(LicensesTest, ANumberThatIsLoweredEndsNoJobAndIsTold) {
  EXPECT_EQ(exceeded(), "");
  there_are(1);
  world_.run_for(minutes{2});
  EXPECT_EQ(world_.state("first"), "Running");
  EXPECT_THAT(exceeded(), HasSubstr("2 of license matlab are in use and there are 1"));
  world_.patch_job("first", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{3}));
  world_.run_for(minutes{2});
  EXPECT_THAT(exceeded(), HasSubstr("False"));
}

}  // namespace
}  // namespace control
