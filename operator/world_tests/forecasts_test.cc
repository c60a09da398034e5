// Jobs that only ask when and where they would start (spec.testOnly).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "kube/api/codec.h"
#include "kube/api/namespace.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

json with_limit(const std::string& limit, const json& more = json::object()) {
  json spec{{"schedule", {{"timeLimit", limit}}}};
  spec.merge_patch(more);
  return spec;
}
json asking(const std::string& limit, const json& more = json::object()) {
  json spec = with_limit(limit, more);
  spec["testOnly"] = true;
  return spec;
}

class ForecastsTest : public ::testing::Test {
 protected:
  ForecastsTest() {
    world_.apply(linear_config());
    world_.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
    world_.run_for(seconds{1});
  }

  // Returns the answer, which comes at once.
  kube::JobForecast ask(const json& job) {
    world_.apply(job);
    const std::string name = job["metadata"]["name"];
    EXPECT_TRUE(world_.run_until([&] { return world_.job(name).status.forecast.has_value(); },
                                 seconds{10}))
        << world_.log_tail();
    return world_.job(name).status.forecast.value_or(kube::JobForecast{});
  }
  bool exists(const std::string& name) {
    return world_.client().get<kube::Job>({"team-a", name}).ok();
  }

  World world_{{}};
};

// Jobs that end when their time is over. The one that was asked for is then submitted.
TEST_F(ForecastsTest, WhatIsForetoldIsWhatHappens) {
  world_.apply(gang_job("first", 5, "", with_limit("10m")));
  world_.run_for(seconds{20});
  world_.apply(gang_job("second", 3, "", with_limit("5m")));
  world_.run_for(seconds{20});
  const kube::JobForecast answer = ask(gang_job("question", 4, "", asking("1m")));
  ASSERT_TRUE(answer.start_time) << answer.message;
  EXPECT_EQ(answer.job_id, 3);
  EXPECT_EQ(answer.partition, "batch");
  EXPECT_EQ(answer.nodes, 4);
  EXPECT_EQ(answer.cpus, 32);
  EXPECT_EQ(answer.stops, std::nullopt);
  world_.apply(gang_job("third", 4, "", with_limit("1m")));
  ASSERT_TRUE(world_.run_until([&] { return world_.state("third") == "Running"; }, minutes{30}));
  // Pods take some seconds to start and to end, which no forecast contains.
  EXPECT_GE(world_.clock().wall(), *answer.start_time);
  EXPECT_LE(world_.clock().wall() - *answer.start_time, seconds{10});
  const kube::Job third = world_.job("third");
  EXPECT_EQ(third.status.job_id, answer.job_id);
  EXPECT_EQ(third.status.allocation->hostlist, answer.hostlist);
  expect_no_violations(world_);
}

TEST_F(ForecastsTest, NothingOfItIsLeftButItsAnswerForAMinute) {
  (void)ask(gang_job("question", 2, "10s", asking("1m")));
  world_.run_for(seconds{40});
  const kube::Job job = world_.job("question");
  EXPECT_EQ(job.status.state, std::nullopt);
  EXPECT_EQ(job.status.job_id, std::nullopt);
  EXPECT_TRUE(world_.pods().empty());
  EXPECT_EQ(world_.process().loop().counters().jobs_pending, 0);
  world_.run_for(seconds{40});
  EXPECT_FALSE(exists("question"));
  // The number is the next one's.
  world_.apply(gang_job("first", 1, "10s"));
  world_.run_for(seconds{20});
  EXPECT_EQ(world_.job("first").status.job_id, 1);
}

TEST_F(ForecastsTest, WhatIsIllegalOrTooLargeSaysWhy) {
  const kube::JobForecast unknown =
      ask(gang_job("unknown", 1, "", asking("1m", {{"partitions", json::array({"nope"})}})));
  EXPECT_EQ(unknown.start_time, std::nullopt);
  EXPECT_THAT(unknown.message, HasSubstr("nope"));
  const kube::JobForecast large = ask(gang_job("large", 6, "", asking("1m")));
  EXPECT_EQ(large.start_time, std::nullopt);
  EXPECT_THAT(large.message, HasSubstr("6"));
  world_.apply(gang_job("endless", 5, ""));
  world_.run_for(seconds{20});
  const kube::JobForecast waits = ask(gang_job("waits", 1, "", asking("1m")));
  EXPECT_EQ(waits.start_time, std::nullopt);
  EXPECT_THAT(waits.message, HasSubstr("within 7 days"));
}

TEST_F(ForecastsTest, JobsThatItWouldStopAreNamedInItsOwnNamespaceAlone) {
  json config = linear_config();
  config["spec"]["preemptMode"] = "Requeue";
  config["spec"]["gang"] = false;
  world_.apply(config);
  world_.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                  {"priorityTier", 9},
                                  {"overSubscribe", {{"policy", "Never"}}}}));
  kube::Namespace others;
  others.metadata.name = "others";
  ASSERT_TRUE(world_.client().create(others).ok());
  json hidden = gang_job("hidden", 2, "", with_limit("10m"));
  hidden["metadata"]["namespace"] = "others";
  const auto job = kube::decode<kube::Job>(hidden);
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(world_.client().create(*job).ok());
  world_.apply(gang_job("shown", 3, "", with_limit("10m")));
  world_.run_for(seconds{20});
  const kube::JobForecast answer =
      ask(gang_job("question", 5, "", asking("1m", {{"partitions", json::array({"high"})}})));
  ASSERT_TRUE(answer.start_time) << answer.message;
  ASSERT_TRUE(answer.stops);
  EXPECT_EQ(answer.stops->requeued, 2);
  EXPECT_THAT(answer.stops->jobs, ElementsAre("shown"));
  EXPECT_EQ(world_.state("shown"), "Running");
}

// The one before has crashed between the question and the answer, or after it.
TEST_F(ForecastsTest, ANewLeaderAnswersAndDeletes) {
  world_.crash_after(WritePoint::kForecast);
  world_.apply(gang_job("question", 2, "10s", asking("1m")));
  world_.run_for(seconds{10});
  EXPECT_EQ(world_.crashes(), 1);
  EXPECT_TRUE(world_.job("question").status.forecast);
  world_.restart_operator();
  world_.run_for(seconds{80});
  EXPECT_FALSE(exists("question"));
}

// The leader's clock is hours off, and so would be each instant in its answers.
TEST_F(ForecastsTest, ALeaderThatDistrustsItsClockLeavesThemToTheNextOne) {
  world_.restart_operator();
  world_.process().loop().distrust_clock();
  world_.apply(gang_job("question", 2, "10s", asking("1m")));
  world_.run_for(seconds{30});
  EXPECT_FALSE(world_.job("question").status.forecast);
  world_.restart_operator();
  world_.run_for(seconds{10});
  EXPECT_TRUE(world_.job("question").status.forecast);
}

TEST_F(ForecastsTest, ManyAreAnsweredOneAfterTheOther) {
  for (int i = 0; i < 20; ++i) {
    world_.apply(gang_job("question" + std::to_string(i), 1, "10s", asking("1m")));
  }
  world_.run_for(seconds{20});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(world_.job("question" + std::to_string(i)).status.forecast) << i;
  }
}

}  // namespace
}  // namespace control
