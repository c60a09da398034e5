// Accounts, limits and priorities, from the objects to what becomes of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

json policy(const std::string& kind, const std::string& name, const json& spec) {
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}
json account(const std::string& name, const json& spec) {
  return policy("Account", name, spec);
}
json in_account(const std::string& name) {
  return {{"schedule", {{"account", name}}}};
}
json of_qos(const std::string& name) {
  return {{"schedule", {{"qos", name}}}};
}

struct Accounts : testing::Test {
  Accounts() {
    world.apply(linear_config());
    world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  }
  std::string ns() { return world.job("first").metadata.ns; }
  std::string reason(const std::string& job) { return world.job(job).status.reason; }

  World world{{}};
};

TEST_F(Accounts, AJobIsOfAnAccountThatListsItsNamespace) {
  world.apply(account("physics", {{"namespaces", {{{"name", "somebody-else"}}}}}));
  world.apply(gang_job("first", 1, "5s", in_account("physics")));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "first", "Accepted"),
              HasSubstr("account \"physics\" does not list namespace \"" + ns() + "\""));
  world.apply(account("physics", {{"namespaces", {{{"name", ns()}}}}}));
  EXPECT_TRUE(world.run_until([&] { return world.state("first") == "Completed"; }, seconds{60}))
      << world.log_tail();
  expect_no_violations(world);
}

// The namespace's default, and the limits of accounts on the way up.
TEST_F(Accounts, AJobWithoutAnAccountIsOfTheDefaultOneAndItsLimitsHold) {
  world.apply(gang_job("first", 1, ""));
  world.run_for(seconds{2});
  world.apply(account("science", {{"limits", {{"group", {{"resources", {{"nodes", 2}}}}}}}}));
  world.apply(account("physics", {{"parent", "science"},
                                  {"namespaces", {{{"name", ns()}}}},
                                  {"limits", {{"group", {{"submittedJobs", 3}}}}}}));
  world.run_for(seconds{2});
  world.apply(gang_job("second", 1, ""));
  world.apply(gang_job("third", 1, ""));
  world.run_for(seconds{3});
  EXPECT_EQ(world.state("second"), "Running") << world.log_tail();
  EXPECT_EQ(world.state("third"), "Pending");
  EXPECT_EQ(reason("third"), "AssocGrpNodeLimit");
  world.apply(gang_job("fourth", 1, ""));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "fourth", "Accepted"), HasSubstr("account physics"));
  world.remove_job("first");
  EXPECT_TRUE(world.run_until([&] { return world.state("third") == "Running"; }, seconds{60}))
      << world.log_tail();
  expect_no_violations(world);
}

TEST_F(Accounts, LimitsOfAQosKeepJobsWaitingOrTurnThemAway) {
  world.apply(
      policy("QOS", "few", {{"limits", {{"perNamespace", {{"jobs", 1}, {"submittedJobs", 2}}}}}}));
  world.apply(policy(
      "QOS", "small",
      {{"limits", {{"perJob", {{"resources", {{"nodes", 1}}}}}}}, {"flags", {"DenyOnLimit"}}}));
  for (const char* name : {"a", "b", "c"}) {
    world.apply(gang_job(name, 1, "", of_qos("few")));
    world.run_for(seconds{2});
  }
  EXPECT_EQ(world.state("a"), "Running") << world.log_tail();
  EXPECT_EQ(reason("b"), "QOSMaxJobsPerUserLimit");
  EXPECT_THAT(world.condition("Job", "c", "Accepted"), HasSubstr("False: "));
  world.apply(gang_job("wide", 2, "", of_qos("small")));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "wide", "Accepted"), HasSubstr("QOS small allows 1"));
}

TEST_F(Accounts, UnderMultifactorPrioritiesFollowFromTheWeights) {
  json config = linear_config();
  config["spec"]["priority"] = {{"type", "Multifactor"}, {"weights", {{"jobSize", 1000}}}};
  world.apply(config);
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{2});
  world.apply(gang_job("small", 1, ""));
  world.apply(gang_job("wide", 5, ""));
  world.run_for(seconds{3});
  world.remove_job("runs");
  ASSERT_TRUE(world.run_until([&] { return world.state("wide") == "Running"; }, seconds{60}))
      << world.log_tail();
  EXPECT_EQ(world.state("small"), "Pending") << "it was submitted before";
}

}  // namespace
}  // namespace control
