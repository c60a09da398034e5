// Arrays: one Job of many tasks, each with a start, pods and an end of its own, which the status of
// the Job has (13.4). Over changes of leaders, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/array_status.h"
#include "api/wellknown.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json tasks(const std::string& numbers, int parallelism = 0) {
  json array{{"tasks", numbers}};
  if (parallelism > 0) array["parallelism"] = parallelism;
  return {{"array", array}};
}

class ArrayTest : public ::testing::Test {
 protected:
  ArrayTest() : ArrayTest{World::Options{}} {}
  explicit ArrayTest(World::Options options) : world{options} {
    json config = linear_config("4s");
    config["spec"]["requeue"] = {{"delay", "2s"}};
    config["spec"]["killWait"] = "2s";
    world.apply(config);
    world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  }
  kube::ArrayStatus array(const std::string& name) const {
    return world.job(name).status.array.value_or(kube::ArrayStatus{});
  }
  std::vector<int> started(const std::string& name) const {
    std::vector<int> numbers;
    for (const kube::ArrayTask& task : array(name).tasks) numbers.push_back(task.task);
    return numbers;
  }
  bool ends(const std::string& name) {
    return world.run_until(
        [&] {
          const auto state = world.job(name).status.state;
          return state && kube::is_final(*state);
        },
        minutes{10});
  }
  // Returns the pods of which something may still run.
  std::size_t live_pods(const std::string& name) const {
    const auto pods = world.pods_of(name);
    return static_cast<std::size_t>(std::ranges::count_if(pods, [](const kube::Pod& pod) {
      return pod.status.phase != kube::PodPhase::kSucceeded &&
             pod.status.phase != kube::PodPhase::kFailed;
    }));
  }

  World world;
};

TEST_F(ArrayTest, EachTaskStartsAndEndsByItself) {
  world.apply(gang_job("sweep", 1, "10s", tasks("1-7")));
  world.run_for(seconds{5});
  // Five nodes.
  EXPECT_THAT(started("sweep"), ElementsAre(1, 2, 3, 4, 5)) << world.log_tail();
  EXPECT_EQ(array("sweep").summary, "0 of 7 done, 5 run");
  EXPECT_EQ(world.state("sweep"), "Running");
  std::set<std::string> numbers;
  for (const kube::Pod& pod : world.pods_of("sweep")) {
    numbers.insert(pod.metadata.labels.at(std::string{kube::kLabelArrayTask}));
    EXPECT_THAT(pod.metadata.name, HasSubstr("sweep-"));
  }
  EXPECT_THAT(numbers, ElementsAre("1", "2", "3", "4", "5"));
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(world.state("sweep"), "Completed") << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "1-7");
  EXPECT_EQ(array("sweep").summary, "7 of 7 done");
  EXPECT_EQ(world.job("sweep").status.exit_code, 0);
  expect_no_violations(world);
}

// As Slurm: a task that is split off gets a number of its own, the last one has that of the array.
TEST_F(ArrayTest, TasksHaveNumbers) {
  world.apply(gang_job("sweep", 1, "10s", tasks("1-3")));
  world.run_for(seconds{5});
  std::vector<std::int64_t> numbers;
  for (const kube::ArrayTask& task : array("sweep").tasks) numbers.push_back(*task.job_id);
  const std::int64_t own = *world.job("sweep").status.job_id;
  EXPECT_THAT(numbers, ElementsAre(own + 1, own + 2, own)) << world.log_tail();
}

TEST_F(ArrayTest, NoMoreThanParallelismRun) {
  world.apply(gang_job("sweep", 1, "4s", tasks("0-5", 2)));
  std::size_t most = 0;
  for (int i = 0; i < 60; ++i) {
    world.run_for(seconds{1});
    most = std::max(most, live_pods("sweep"));
    EXPECT_LE(array("sweep").counts.running, 2);
  }
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(array("sweep").succeeded, "0-5") << world.log_tail();
  expect_no_violations(world);
}

TEST_F(ArrayTest, ATaskThatFailsIsNamedAndTheArrayHasItsExitCode) {
  json job = gang_job("sweep", 1, "3s", tasks("0-5"));
  job["spec"]["template"]["metadata"]["annotations"]["test/failing-task"] = "4";
  world.apply(job);
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(world.state("sweep"), "Failed");
  EXPECT_EQ(array("sweep").failed, "4");
  EXPECT_EQ(array("sweep").succeeded, "0-3,5");
  EXPECT_EQ(world.job("sweep").status.exit_code, 1);
}

TEST_F(ArrayTest, SingleTasksAreCanceledHeldAndReleased) {
  json more = tasks("0-9");
  more["control"] = {{"hold", true}, {"tasks", {{{"tasks", "3,5-7"}, {"cancel", true}}}}};
  world.apply(gang_job("sweep", 1, "3s", more));
  world.run_for(seconds{5});
  EXPECT_EQ(array("sweep").cancelled, "3,5-7") << world.log_tail();
  EXPECT_EQ(world.job("sweep").status.reason, "JobHeldUser");
  EXPECT_EQ(array("sweep").counts.running, 0);
  json control{
      {"tasks", {{{"tasks", "3,5-7"}, {"cancel", true}}, {{"tasks", "0"}, {"hold", false}}}}};
  world.patch_job("sweep", {{"control", control}});
  world.run_for(seconds{15});
  EXPECT_EQ(array("sweep").succeeded, "0") << world.log_tail();
  control["hold"] = false;
  world.patch_job("sweep", {{"control", control}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-2,4,8-9");
  EXPECT_EQ(world.state("sweep"), "Cancelled");
  expect_no_violations(world);
}

// A change of the request says its hold, and a new priority a release, of all tasks that wait.
TEST_F(ArrayTest, AChangeOfTheArrayLeavesWhatIsAskedOfSingleTasks) {
  json released = tasks("0-9", 1);
  released["control"] = {{"hold", true}, {"tasks", {{{"tasks", "0-1"}, {"hold", false}}}}};
  world.apply(gang_job("released", 1, "3s", released));
  json held = tasks("0-2", 1);
  held["control"] = {{"tasks", {{{"tasks", "2"}, {"hold", true}}}}};
  world.apply(gang_job("held", 1, "3s", held));
  world.run_for(seconds{2});
  world.patch_job("released", {{"schedule", {{"nice", 5}}}});
  world.patch_job("held", {{"schedule", {{"priority", 1000}}}});
  world.run_for(seconds{20});
  EXPECT_EQ(array("released").succeeded, "0-1") << world.log_tail();
  EXPECT_EQ(array("held").succeeded, "0-1") << world.log_tail();
  EXPECT_EQ(array("held").counts.running, 0);
  expect_no_violations(world);
}

// An edit that crosses with a start is refused, and says nothing against one that comes after it.
TEST_F(ArrayTest, ItsThrottleChangesAlsoAfterARefusedEdit) {
  world.apply(gang_job("sweep", 1, "30s", tasks("0-5", 3)));
  world.run_for(seconds{3});
  ASSERT_EQ(array("sweep").counts.running, 3) << world.log_tail();
  world.patch_job("sweep", {{"resources", {{"nodes", {{"min", 2}}}}}});
  world.run_for(seconds{1});
  world.patch_job("sweep", {{"array", {{"parallelism", 1}}}});
  world.patch_job("sweep", {{"control", {{"tasks", {{{"tasks", "0"}, {"requeueRequest", 1}}}}}}});
  ASSERT_TRUE(world.run_until([&] { return array("sweep").counts.running == 2; }, seconds{4}));
  world.run_for(seconds{1});
  EXPECT_EQ(array("sweep").counts.running, 2) << world.log_tail();
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("spec.resources.nodes"));
  expect_no_violations(world);
}

// The nodes have changed since it was accepted, and tasks that wait start on them as they are now.
TEST_F(ArrayTest, ATaskStartsOnNoTaintedNodeAlsoAfterARefusedEdit) {
  world.apply(gang_job("sweep", 1, "", tasks("1-7")));
  world.run_for(seconds{5});
  ASSERT_EQ(array("sweep").counts.running, 5) << world.log_tail();
  world.patch_job("sweep", {{"resources", {{"nodes", {{"min", 2}}}}}});
  world.run_for(seconds{1});
  ASSERT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("False"));
  const json taints = json::array({{{"key", "team"}, {"effect", "NoSchedule"}}});
  ASSERT_TRUE(world.client().patch<kube::Node>({"", "n12"}, {{"spec", {{"taints", taints}}}}).ok());
  world.run_for(seconds{2});
  std::map<std::string, int> first;  // by node
  for (const kube::ArrayTask& task : array("sweep").tasks) {
    first[task.allocation->hostlist] = task.task;
  }
  const std::string freed = std::to_string(first["n12"]) + "," + std::to_string(first["n13"]);
  world.patch_job("sweep", {{"control", {{"tasks", {{{"tasks", freed}, {"cancel", true}}}}}}});
  world.run_for(seconds{20});
  std::set<std::string> hosts;
  for (const kube::ArrayTask& task : array("sweep").tasks) hosts.insert(task.allocation->hostlist);
  EXPECT_THAT(hosts, ElementsAre("n13", "n14", "n15", "n16")) << world.log_tail();
  expect_no_violations(world);
}

// The array's spec says what tasks were started with, to a new leader, too.
TEST_F(ArrayTest, ItsSpecIsLockedWhileATaskHasNodes) {
  world.apply(partition("other", {{"nodes", {{"hostlist", "n[12-16]"}}}}));
  world.apply(gang_job("sweep", 1, "8s", tasks("0-3", 2)));
  world.run_for(seconds{3});
  ASSERT_EQ(array("sweep").counts.running, 2) << world.log_tail();
  world.patch_job("sweep", {{"control", {{"hold", true}}}, {"array", {{"parallelism", 3}}}});
  world.run_for(seconds{1});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("True"));
  world.patch_job("sweep", {{"partitions", {"other"}}});
  world.run_for(seconds{1});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"),
              HasSubstr("spec.partitions: cannot change while the job is allocated"));
  world.run_for(seconds{15});
  EXPECT_EQ(array("sweep").succeeded, "0-1") << world.log_tail();
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("True")) << world.log_tail();
  world.patch_job("sweep", {{"control", {{"hold", false}}}});
  world.run_for(seconds{3});
  ASSERT_EQ(array("sweep").counts.running, 2) << world.log_tail();
  EXPECT_EQ(array("sweep").tasks.front().partition, "other");
  // The last one leaves its nodes by a requeue.
  world.patch_job("sweep", {{"partitions", {"batch"}}});
  world.run_for(seconds{1});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("False"));
  world.patch_job("sweep", {{"control", {{"requeueRequest", 1}}}});
  world.run_for(seconds{4});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("True")) << world.log_tail();
}

// Terms of single tasks replace those of the array, over a change of leaders.
TEST_F(ArrayTest, TasksHaveLimitsAndPrioritiesOfTheirOwn) {
  const auto limit_of = [&](int task) {
    return kube::stored_task(world.job("sweep").status, task).time_limit;
  };
  json job = gang_job("sweep", 1, "20s", tasks("0-8"));
  job["spec"]["schedule"]["timeLimit"] = "1h";
  world.apply(job);
  world.run_for(seconds{4});
  ASSERT_THAT(started("sweep"), ElementsAre(0, 1, 2, 3, 4)) << world.log_tail();
  const json control{{"tasks",
                      {{{"tasks", "1"}, {"timeLimit", "12s"}},
                       {{"tasks", "6"}, {"timeLimit", "5s"}, {"nice", 7}},
                       {{"tasks", "7"}, {"timeLimit", "30m"}, {"priority", 4'294'960'000}},
                       {{"tasks", "8"}, {"nice", -7}}}}};
  world.patch_job("sweep", {{"control", control}});
  world.run_for(seconds{1});
  EXPECT_EQ(limit_of(0), std::chrono::hours{1});
  EXPECT_EQ(limit_of(1), seconds{12}) << world.log_tail();
  world.restart_operator();
  world.run_for(seconds{14});
  EXPECT_EQ(array("sweep").failed, "1") << world.log_tail();
  EXPECT_EQ(limit_of(7), minutes{30}) << "it has started, by its priority";
  EXPECT_EQ(limit_of(5), std::nullopt);
  world.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").failed, "1,6");
  EXPECT_EQ(array("sweep").succeeded, "0,2-5,7-8");
  expect_no_violations(world);
}

// A task that runs longer than the array may is not ended by a change of the array, whatever that
// is about; and not by the next leader.
TEST_F(ArrayTest, ATaskKeepsItsOwnLimitWhenTheArrayIsChanged) {
  json job = gang_job("sweep", 1, "60s", tasks("0-1"));
  job["spec"]["schedule"]["timeLimit"] = "30s";
  job["spec"]["control"]["tasks"] = {{{"tasks", "0"}, {"timeLimit", "5m"}}};
  world.apply(job);
  world.run_for(seconds{40});
  ASSERT_EQ(array("sweep").failed, "1") << world.log_tail();
  world.patch_job("sweep", {{"schedule", {{"nice", 5}}}});
  world.run_for(seconds{1});
  world.patch_job("sweep", {{"schedule", {{"timeLimit", "20s"}}}});
  world.run_for(seconds{1});
  world.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0") << world.log_tail();
}

// A wish that is taken back while no leader is there, too.
TEST_F(ArrayTest, ATaskWithoutALimitOfItsOwnHasThatOfTheArray) {
  json job = gang_job("sweep", 1, "60s", tasks("0-1"));
  job["spec"]["schedule"]["timeLimit"] = "30s";
  job["spec"]["control"]["tasks"] = {{{"tasks", "0-1"}, {"timeLimit", "5m"}}};
  world.apply(job);
  world.run_for(seconds{10});
  world.patch_job("sweep", {{"control", {{"tasks", {{{"tasks", "1"}, {"timeLimit", "5m"}}}}}}});
  world.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").failed, "0") << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "1");
}

TEST_F(ArrayTest, ACancelEndsAllTasks) {
  world.apply(gang_job("sweep", 1, "", tasks("0-99")));
  world.run_for(seconds{5});
  ASSERT_EQ(live_pods("sweep"), 5U) << world.log_tail();
  world.patch_job("sweep", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(world.state("sweep"), "Cancelled");
  EXPECT_EQ(array("sweep").cancelled, "0-99");
  EXPECT_EQ(live_pods("sweep"), 0U);
  expect_no_violations(world);
}

TEST_F(ArrayTest, ATaskIsRequeuedByItself) {
  world.apply(gang_job("sweep", 1, "8s", tasks("0-1")));
  world.run_for(seconds{4});
  world.patch_job("sweep", {{"control", {{"tasks", {{{"tasks", "1"}, {"requeueRequest", 1}}}}}}});
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("sweep"), "Completed") << world.log_tail();
  bool restarted = false;
  for (const kube::Pod& pod : world.pods_of("sweep")) {
    const auto& labels = pod.metadata.labels;
    if (labels.at(std::string{kube::kLabelArrayTask}) != "1") continue;
    restarted = restarted || labels.at(std::string{kube::kLabelStart}) == "2";
  }
  EXPECT_TRUE(restarted) << world.log_tail();
}

// Each start is judged by the nodes as they are then, also the second one of a task.
TEST_F(ArrayTest, ATaskThatIsRequeuedStartsOnNoNodeThatWasTaintedMeanwhile) {
  world.apply(gang_job("sweep", 1, "", tasks("1-2")));
  world.run_for(seconds{5});
  const auto taint = [&](const std::string& node, bool is_set) {
    const json one{{"key", "team"}, {"effect", "NoSchedule"}};
    const json taints = is_set ? json::array({one}) : json();
    ASSERT_TRUE(
        world.client().patch<kube::Node>({"", node}, {{"spec", {{"taints", taints}}}}).ok());
    world.run_for(seconds{2});
  };
  const auto node_of_start = [&](int start) -> std::string {
    if (start > 1) {
      const json entry{{"tasks", "1"}, {"requeueRequest", start - 1}};
      world.patch_job("sweep", {{"control", {{"tasks", {entry}}}}});
    }
    const auto has_started = [&] {
      const kube::ArrayTask first = array("sweep").tasks.front();
      return first.starts == start && first.allocation.has_value();
    };
    EXPECT_TRUE(world.run_until(has_started, minutes{1})) << world.log_tail();
    const auto allocation = array("sweep").tasks.front().allocation;
    return allocation ? allocation->hostlist : "";
  };
  ASSERT_EQ(node_of_start(1), "n12");
  taint("n12", true);
  EXPECT_EQ(node_of_start(2), "n14") << world.log_tail();
  taint("n12", false);
  taint("n14", true);
  EXPECT_EQ(node_of_start(3), "n12") << world.log_tail();
  expect_no_violations(world);
}

TEST_F(ArrayTest, ADeletedArrayTakesItsPodsWithIt) {
  world.apply(gang_job("sweep", 1, "", tasks("0-99")));
  world.run_for(seconds{5});
  world.remove_job("sweep");
  ASSERT_TRUE(world.run_until([&] { return live_pods("sweep") == 0; }, minutes{2}))
      << world.log_tail();
  world.apply(gang_job("next", 5, "2s"));
  ASSERT_TRUE(ends("next")) << world.log_tail();
  expect_no_violations(world);
}

// One would be suspended at its start, and give its cores to the next.
TEST_F(ArrayTest, NoTaskStartsWhileItsArrayIsSuspended) {
  world.apply(gang_job("sweep", 1, "5s", tasks("0-11")));
  world.run_for(seconds{3});
  ASSERT_THAT(started("sweep"), ElementsAre(0, 1, 2, 3, 4)) << world.log_tail();
  world.patch_job("sweep", {{"control", {{"suspend", true}}}});
  world.run_for(seconds{20});
  EXPECT_THAT(started("sweep"), ElementsAre(0, 1, 2, 3, 4)) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "");
  // One goes on by itself, and others do by themselves.
  world.patch_job("sweep", {{"control",
                             {{"tasks",
                               {{{"tasks", "2"}, {"suspend", false}},
                                {{"tasks", "9"}, {"suspend", false}, {"hold", false}}}}}}});
  world.run_for(seconds{20});
  EXPECT_EQ(array("sweep").succeeded, "2,9") << world.log_tail();
  world.patch_job("sweep", {{"control", {{"suspend", false}}}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-11");
  expect_no_violations(world);
}

// The array's record has been put away by then.
TEST_F(ArrayTest, AnEditAfterItsEndLeavesWhatHasBecomeOfItsTasks) {
  world.apply(gang_job("sweep", 1, "2s", tasks("0-3")));
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  world.run_for(minutes{1});
  world.patch_job("sweep", {{"lifecycle", {{"ttlAfterFinished", "24h"}}}});
  world.run_for(seconds{5});
  EXPECT_EQ(world.job("sweep").status.observed_generation, world.job("sweep").metadata.generation);
  EXPECT_EQ(array("sweep").succeeded, "0-3") << world.log_tail();
  EXPECT_EQ(array("sweep").summary, "4 of 4 done");
}

// Ten of 30 tasks that ended well keep their pods.
TEST_F(ArrayTest, ThePodsOfTheLastTasksStay) {
  world.apply(gang_job("sweep", 1, "1s", tasks("0-29")));
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  world.run_for(seconds{10});
  EXPECT_EQ(world.pods_of("sweep").size(), 10U) << world.log_tail();
}

TEST_F(ArrayTest, ANewLeaderKnowsThePodsThatWereKept) {
  world.apply(gang_job("sweep", 1, "1s", tasks("0-29")));
  ASSERT_TRUE(world.run_until([&] { return array("sweep").counts.succeeded >= 15; }, minutes{5}));
  world.restart_operator();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  world.run_for(seconds{10});
  EXPECT_EQ(world.pods_of("sweep").size(), 10U) << world.log_tail();
}

// A requeue of what waits asks for nothing, then or later; a release of the whole array releases no
// tasks that are held by themselves.
TEST_F(ArrayTest, WhatIsAskedOfATaskThatWaitsDoesNotComeLater) {
  json more = tasks("0-5", 1);
  json control{
      {"tasks", {{{"tasks", "2"}, {"requeueRequest", 1}}, {{"tasks", "4-5"}, {"hold", true}}}}};
  world.apply(gang_job("sweep", 1, "2s", more));
  world.run_for(seconds{1});
  control["releaseRequest"] = 1;
  world.patch_job("sweep", {{"control", control}});
  world.run_for(minutes{1});
  EXPECT_EQ(array("sweep").succeeded, "0-3") << world.log_tail();
  for (const kube::Pod& pod : world.pods_of("sweep")) {
    EXPECT_EQ(pod.metadata.labels.at(std::string{kube::kLabelStart}), "1");
  }
}

// Each task that has started has an entry, also while it waits again, held by its user; and each
// release of the array, or of single other tasks, would start more.
class LargeArrayTest : public ::testing::TestWithParam<bool> {};

TEST_P(LargeArrayTest, NoSequenceOfRequestsMakesTheStatusGrow) {
  World world{{.nodes = {"n12", "n13"}, .cpus = 600, .pods_per_node = 700}};
  json config = linear_config();
  config["spec"]["select"] = {{"type", "ConsTres"}, {"memory", false}};
  config["spec"]["requeue"] = {{"delay", "8s"}};
  config["spec"]["killWait"] = "2s";
  world.apply(config);
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}}));
  world.tick = seconds{1};
  json job = gang_job("sweep", 1, "", tasks("0-4999"));
  job["spec"]["resources"] = {{"tasks", 1}};
  json control{{"hold", GetParam()}, {"tasks", json::array()}};
  const auto apply = [&](base::Duration duration) {
    job["spec"]["control"] = control;
    world.apply(job);
    world.run_for(duration);
  };
  const auto status = [&] { return *world.job("sweep").status.array; };
  for (int round = 0; round < 2; ++round) {
    const std::string first = std::to_string(round * 1000);
    const std::string next = first + "-" + std::to_string(round * 1000 + 999);
    control["releaseRequest"] = GetParam() ? 0 : round;
    if (GetParam()) control["tasks"].push_back({{"tasks", next}, {"hold", false}});
    apply(seconds{10});
    ASSERT_EQ(status().counts.running, round < 1 ? 1000 : 0) << "round " << round;
    // They wait for their delay, and are held then.
    control["tasks"].push_back({{"tasks", next}, {"requeueRequest", 1}});
    apply(seconds{6});
    control["tasks"].push_back({{"tasks", next}, {"hold", true}});
    apply(seconds{6});
    EXPECT_LE(status().tasks.size(), 1'100U) << "round " << round;
  }
  EXPECT_EQ(status().counts.running, 0);
  EXPECT_EQ(world.job("sweep").status.reason, GetParam() ? "JobHeldUser" : "JobArrayTaskLimit");
  // Started tasks start again, after a change of leaders, too, and no others.
  world.restart_operator();
  world.patch_job("sweep", {{"control", {{"hold", false}, {"tasks", nullptr}}}});
  world.run_for(seconds{10});
  EXPECT_EQ(status().counts.running, 1000);
  EXPECT_LE(status().tasks.size(), 1'100U);
}
INSTANTIATE_TEST_SUITE_P(Held, LargeArrayTest, ::testing::Bool());

// No other job, whatever its name, must share it.
// Its pod is made and deleted; the statuses are those of many tasks.
TEST(ArrayWrites, AreNoMoreThanThreeForEachTask) {
  World world{{.nodes = {"n12", "n13"}, .cpus = 100, .pods_per_node = 200}};
  json config = linear_config();
  config["spec"]["select"] = {{"type", "ConsTres"}, {"memory", false}};
  world.apply(config);
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}}));
  world.run_for(seconds{5});
  json job = gang_job("sweep", 1, "10s", tasks("0-999"));
  job["spec"]["resources"] = {{"tasks", 1}};
  const auto count = [&] {
    const std::set<WritePoint> reads{WritePoint::kTemplateRead, WritePoint::kPodRead,
                                     WritePoint::kPodTry};
    return std::ranges::count_if(world.process().writer().points(),
                                 [&](WritePoint point) { return !reads.contains(point); });
  };
  const auto before = count();
  world.apply(job);
  const auto done = [&] { return world.state("sweep") == "Completed"; };
  ASSERT_TRUE(world.run_until(done, minutes{20})) << world.log_tail();
  world.run_for(seconds{10});
  EXPECT_LE(count() - before, 3 * 1000);
  RecordProperty("writes", static_cast<int>(count() - before));
}

// Each version of a Job is stored as a whole, with the entries of all tasks that run.
struct ArrayLoad {
  int run = 0;  // at a time; one ends and the next starts each work / run
  seconds work{};
  int bytes_max = 0;  // of a task
};
class ArrayBytes : public ::testing::TestWithParam<ArrayLoad> {};

// An API server stores these with each object, and the one here does not.
constexpr std::size_t kManagedFieldsBytes = 1'500;

// Returns the bytes of all versions of Jobs since `version`, and moves that to the newest.
std::size_t stored_since(World& world, std::string& version) {
  PumpTransport transport{world.server(), "test"};
  std::size_t bytes = 0;
  const auto add = [&](std::string_view line) {
    const json event = json::parse(line);
    version = event["object"]["metadata"]["resourceVersion"];
    if (event["type"] != "BOOKMARK") bytes += event["object"].dump().size() + kManagedFieldsBytes;
    return true;
  };
  const std::string path =
      "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs?watch=1&resourceVersion=" + version;
  EXPECT_TRUE(transport.stream({.method = kube::Method::kGet, .path = path}, add, {}).ok());
  return bytes;
}

TEST_P(ArrayBytes, OfATaskAreFew) {
  const auto& [run, work, bytes_max] = GetParam();
  World world{{.nodes = {"n12", "n13"}, .cpus = run, .pods_per_node = 2 * run}};
  json config = linear_config();
  config["spec"]["select"] = {{"type", "ConsTres"}, {"memory", false}};
  world.apply(config);
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}}));
  world.run_for(seconds{5});
  json job = gang_job("sweep", 1, std::to_string(work.count()) + "s", tasks("0-99999", 1));
  job["spec"]["resources"] = {{"tasks", 1}};
  world.apply(job);
  for (int i = 2; i <= run; ++i) {
    world.run_for(base::Duration{work} / run);
    world.patch_job("sweep", {{"array", {{"parallelism", i}}}});
  }
  world.run_for(work);
  const auto status = [&] { return *world.job("sweep").status.array; };
  ASSERT_EQ(status().counts.running, run) << world.log_tail();
  std::string version = world.job("sweep").metadata.resource_version;
  const int before = status().counts.succeeded;
  std::size_t bytes = 0;
  const auto count_bytes = [&] {
    bytes += stored_since(world, version);
    return false;
  };
  (void)world.run_until(count_bytes, 2 * work);
  const int ended = status().counts.succeeded - before;
  ASSERT_GE(ended, 3 * run / 2) << world.log_tail();
  const auto of_task = static_cast<int>(bytes) / ended;
  RecordProperty("bytes of a task", of_task);
  RecordProperty("tasks a minute", static_cast<int>(ended * minutes{1} / (2 * work)));
  EXPECT_LE(of_task, bytes_max);
  expect_no_violations(world);
}
INSTANTIATE_TEST_SUITE_P(
    Loads, ArrayBytes,
    ::testing::Values(ArrayLoad{10, seconds{60}, 4'096}, ArrayLoad{20, seconds{60}, 4'096},
                      ArrayLoad{100, seconds{10}, 4'096}, ArrayLoad{100, seconds{60}, 4'096},
                      ArrayLoad{100, seconds{200}, 4'096}, ArrayLoad{100, seconds{600}, 10'000},
                      ArrayLoad{400, seconds{60}, 4'096}));

TEST_F(ArrayTest, AllTasksHaveOneService) {
  world.apply(gang_job("sweep", 2, "3s", tasks("0-3")));
  world.apply(gang_job("sweep-1", 2, "3s"));
  world.run_for(seconds{3});
  std::set<std::string> hosts;
  for (const kube::Pod& pod : world.pods_of("sweep")) {
    const auto raw = world.client().call_json(
        kube::Method::kGet, "/api/v1/namespaces/team-a/pods/" + pod.metadata.name);
    ASSERT_TRUE(raw.ok());
    hosts.insert((*raw)["spec"]["hostname"].get<std::string>() + "." +
                 (*raw)["spec"]["subdomain"].get<std::string>());
  }
  EXPECT_THAT(hosts, ::testing::IsSupersetOf({"sweep-0-0.sweep", "sweep-0-1.sweep"}));
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  ASSERT_TRUE(ends("sweep-1")) << world.log_tail();
  const auto services =
      world.client().call_json(kube::Method::kGet, "/api/v1/namespaces/team-a/services");
  ASSERT_TRUE(services.ok());
  std::set<std::string> names;
  for (const json& service : (*services)["items"]) names.insert(service["metadata"]["name"]);
  EXPECT_THAT(names, ElementsAre("sweep", "sweep-1"));
}

// Nodes that tasks share take turns between them, each by its own entry.
TEST_F(ArrayTest, TasksTakeTurns) {
  world.apply(partition("batch", force("n[12-13]")));
  world.apply(gang_job("sweep", 2, "20s", tasks("0-1")));
  world.run_for(seconds{20});
  std::set<std::int32_t> listed;
  for (const kube::TimetablePod& pod : world.timetable("n12").spec.pods) {
    EXPECT_EQ(pod.job_uid, world.job("sweep").metadata.uid);
    if (pod.task) listed.insert(*pod.task);
  }
  EXPECT_THAT(listed, ElementsAre(0, 1)) << world.log_tail();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(world.state("sweep"), "Completed");
  expect_no_violations(world);
}

// The leader dies after each kind of write of an array; the next one goes on from what is stored.
class ArrayCrashTest : public ArrayTest, public ::testing::WithParamInterface<WritePoint> {};

TEST_F(ArrayTest, ANewLeaderGoesOn) {
  world.apply(gang_job("sweep", 1, "10s", tasks("0-11")));
  world.run_for(seconds{5});
  const std::vector<int> before = started("sweep");
  ASSERT_EQ(before.size(), 5U) << world.log_tail();
  world.restart_operator();
  world.run_for(seconds{2});
  EXPECT_EQ(started("sweep"), before) << world.log_tail();
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-11");
  expect_no_violations(world);
}

TEST_F(ArrayTest, CrashesAtAnyWriteLoseNoTask) {
  const int rounds = std::getenv("KUBEGANG_LONG") != nullptr ? 200 : 4;
  for (int seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World crashing{{.seed = static_cast<std::uint64_t>(seed), .crash_per_mille = 30}};
    json config = linear_config("4s");
    config["spec"]["killWait"] = "2s";
    crashing.apply(config);
    crashing.apply(partition("batch", force("n[12-14]")));
    json job = gang_job("sweep", 1, "4s", tasks("0-14", 8));
    job["spec"]["template"]["metadata"]["annotations"]["test/failing-task"] = "7";
    crashing.apply(job);
    crashing.run_until([&] { return crashing.state("sweep") == "Failed"; }, minutes{15});
    crashing.set_crash_per_mille(0);
    ASSERT_TRUE(
        crashing.run_until([&] { return crashing.state("sweep") == "Failed"; }, minutes{10}))
        << crashing.log_tail();
    const kube::ArrayStatus status = *crashing.job("sweep").status.array;
    EXPECT_EQ(status.failed, "7") << crashing.log_tail();
    EXPECT_EQ(status.succeeded, "0-6,8-14");
    EXPECT_GT(crashing.crashes(), 0);
    expect_no_violations(crashing);
  }
}

TEST_P(ArrayCrashTest, TheNextLeaderFinishesIt) {
  world.crash_after(GetParam());
  world.apply(gang_job("sweep", 1, "4s", tasks("0-7")));
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-7") << world.log_tail();
  EXPECT_EQ(world.crashes(), 1);
  expect_no_violations(world);
}
INSTANTIATE_TEST_SUITE_P(Points, ArrayCrashTest,
                         ::testing::Values(WritePoint::kStart, WritePoint::kPodCreate,
                                           WritePoint::kFinal));

// aftercorr: each task waits for the one of its number; one that waits in vain says so.
TEST_F(ArrayTest, TasksWaitForTheirTwins) {
  json first = gang_job("first", 1, "5s", tasks("1-3"));
  first["spec"]["template"]["metadata"]["annotations"]["test/failing-task"] = "2";
  world.apply(first);
  json more = tasks("1-3");
  more["dependency"] = {{"terms", {{{"type", "AfterCorr"}, {"jobName", "first"}}}}};
  world.apply(gang_job("second", 1, "5s", more));
  world.run_for(seconds{60});
  EXPECT_EQ(array("second").succeeded, "1,3") << world.log_tail();
  ASSERT_EQ(started("second").size(), 1U) << world.log_tail();
  EXPECT_EQ(array("second").tasks.front().task, 2);
  EXPECT_EQ(array("second").tasks.front().reason, "DependencyNeverSatisfied");
  // A new leader knows it as one that waits.
  world.restart_operator();
  world.run_for(seconds{5});
  EXPECT_EQ(array("second").counts.waiting, 1) << world.log_tail();
  world.patch_job("second", {{"control", {{"tasks", {{{"tasks", "2"}, {"cancel", true}}}}}}});
  ASSERT_TRUE(ends("second")) << world.log_tail();
  EXPECT_EQ(array("second").cancelled, "2");
}

// The other array has ended when a new leader comes, so the term of this one is fulfilled: not for
// the task whose twin was canceled, and for task 9, which has no twin and waits for all tasks.
TEST_F(ArrayTest, ATaskWhoseTwinHasFailedWaitsInVainAfterAChangeOfLeaders) {
  json first = tasks("1-3");
  first["control"] = {{"tasks", {{{"tasks", "2"}, {"cancel", true}}}}};
  world.apply(gang_job("first", 1, "5s", first));
  json more = tasks("1-3,9", 1);
  more["dependency"] = {{"terms", {{{"type", "AfterCorr"}, {"jobName", "first"}}}}};
  world.apply(gang_job("second", 1, "20s", more));
  world.run_for(seconds{20});
  EXPECT_EQ(array("first").succeeded, "1,3") << world.log_tail();
  ASSERT_EQ(array("second").counts.running, 1) << world.log_tail();
  EXPECT_EQ(world.job("second").status.dependency.at(0).failed_tasks, "2,9");
  world.restart_operator();
  world.run_for(minutes{2});
  EXPECT_EQ(array("second").succeeded, "1,3") << world.log_tail();
  EXPECT_EQ(array("second").counts.waiting, 2);
  // The one that it waits for is gone, too.
  world.remove_job("first");
  world.restart_operator();
  world.run_for(seconds{10});
  EXPECT_EQ(array("second").counts.waiting, 2) << world.log_tail();
  expect_no_violations(world);
}

// Each was held by itself. All wait as the array did before, and their entries say so.
TEST_F(ArrayTest, TasksThatAreAllJobsByThemselvesSayWhyTheyWait) {
  json more = tasks("0-2");
  more["dependency"] = {{"terms", {{{"type", "AfterOK"}, {"jobName", "first"}}}}};
  more["control"] = {{"tasks", {{{"tasks", "0-2"}, {"hold", true}}}}};
  world.apply(gang_job("second", 1, "5s", more));
  world.run_for(minutes{2});
  world.patch_job("second", {{"control", {{"tasks", {{{"tasks", "0-2"}, {"hold", false}}}}}}});
  world.run_for(minutes{2});
  const kube::ArrayStatus status = array("second");
  ASSERT_EQ(status.tasks.size(), 3U) << world.log_tail();
  for (const kube::ArrayTask& task : status.tasks) EXPECT_EQ(task.reason, "Dependency");
}

// Being named here says nothing of tasks that wait.
TEST_F(ArrayTest, AChangeOfTheArrayMakesNoJobsOfTasksThatAreNamed) {
  json more = tasks("0-2");
  more["dependency"] = {{"terms", {{{"type", "AfterOK"}, {"jobName", "first"}}}}};
  more["control"] = {{"tasks", {{{"tasks", "0-2"}, {"requeueRequest", 1}}}}};
  world.apply(gang_job("second", 1, "5s", more));
  world.run_for(minutes{2});
  world.patch_job("second", {{"schedule", {{"timeLimit", "5m"}}}});
  world.run_for(minutes{2});
  EXPECT_EQ(world.job("second").status.reason, "Dependency") << world.log_tail();
  EXPECT_THAT(started("second"), ElementsAre()) << world.log_tail();
}

// The first pass of the next leader comes after the holds of single tasks are known.
TEST_F(ArrayTest, ANewLeaderStartsNoTaskThatIsHeld) {
  json sweep = tasks("0-4");
  sweep["control"] = {{"tasks", {{{"tasks", "1-3"}, {"hold", true}}}}};
  world.apply(gang_job("sweep", 1, "5s", sweep));
  world.run_for(seconds{20});
  ASSERT_EQ(array("sweep").succeeded, "0,4") << world.log_tail();
  world.patch_job(
      "sweep",
      {{"control",
        {{"tasks", {{{"tasks", "1-2"}, {"hold", true}}, {{"tasks", "3"}, {"cancel", true}}}}}}});
  world.restart_operator();
  world.run_for(seconds{20});
  EXPECT_EQ(array("sweep").succeeded, "0,4") << world.log_tail();
  EXPECT_EQ(array("sweep").counts.running, 0) << world.log_tail();
  EXPECT_EQ(array("sweep").cancelled, "3");
  EXPECT_EQ(world.pods_of("sweep").size(), 2U);
  world.patch_job("sweep", {{"control", {{"tasks", json::array()}}}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-2,4");
  expect_no_violations(world);
}

// The other array has ended before this one comes (recorded: array_corr_other_numbers_backfill),
// and a leader that comes later knows it from its status.
TEST_F(ArrayTest, TasksKnowTheTwinsOfAnArrayThatHasEnded) {
  json first = tasks("1-3");
  first["control"] = {{"tasks", {{{"tasks", "2"}, {"cancel", true}}}}};
  world.apply(gang_job("first", 1, "5s", first));
  ASSERT_TRUE(ends("first")) << world.log_tail();
  json more = tasks("1-3,9");
  more["dependency"] = {{"terms", {{{"type", "AfterCorr"}, {"jobName", "first"}}}}};
  world.apply(gang_job("second", 1, "5s", more));
  more["control"] = {{"hold", true}};
  world.apply(gang_job("third", 1, "5s", more));
  world.run_for(seconds{20});
  EXPECT_EQ(array("second").succeeded, "1,3") << world.log_tail();
  EXPECT_EQ(world.job("second").status.dependency.at(0).failed_tasks, "2,9");
  world.restart_operator();
  world.patch_job("third", {{"control", {{"hold", false}}}});
  world.run_for(seconds{20});
  EXPECT_EQ(array("third").succeeded, "1,3") << world.log_tail();
  // Tasks without a twin that has succeeded all wait in vain.
  more["array"]["tasks"] = "2,9";
  more.erase("control");
  world.apply(gang_job("fourth", 1, "5s", more));
  world.run_for(seconds{10});
  EXPECT_EQ(world.job("fourth").status.reason, "DependencyNeverSatisfied") << world.log_tail();
  expect_no_violations(world);
}

TEST_F(ArrayTest, ATaskThatIsHeldWhileItRunsIsHeldOnceItWasRequeued) {
  world.apply(gang_job("sweep", 1, "20s", tasks("1-2")));
  world.run_for(seconds{5});
  json entry{{"tasks", "1"}, {"hold", true}};
  world.patch_job("sweep", {{"control", {{"tasks", {entry}}}}});
  world.run_for(seconds{2});
  entry["requeueRequest"] = 1;
  world.patch_job("sweep", {{"control", {{"tasks", {entry}}}}});
  world.run_for(seconds{40});
  EXPECT_EQ(array("sweep").succeeded, "2") << world.log_tail();
  ASSERT_EQ(array("sweep").tasks.size(), 1U);
  EXPECT_EQ(array("sweep").tasks.front().reason, "JobHeldUser");
  entry["hold"] = false;
  world.patch_job("sweep", {{"control", {{"tasks", {entry}}}}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "1-2");
  expect_no_violations(world);
}

// T5: a cancel cannot be taken back, least of all by a requeue that is under way. The next leader
// sees it when it finds the requeue decided.
TEST_F(ArrayTest, ACancelOfATaskDuringItsRequeueStands) {
  for (const bool comes_with_a_leader : {false, true}) {
    const std::string name = comes_with_a_leader ? "second" : "first";
    world.apply(gang_job(name, 1, "20s", tasks("1-2")));
    ASSERT_TRUE(world.run_until([&] { return array(name).counts.running == 2; }, minutes{1}));
    world.run_for(seconds{2});
    json entry{{"tasks", "1"}, {"requeueRequest", 1}};
    // So there is a time in which the requeue is stored and its pod is still there.
    world.process().writer().be_slow(world.clock(), seconds{1});
    world.patch_job(name, {{"control", {{"tasks", {entry}}}}});
    const auto has_begun = [&] { return array(name).tasks.front().ending.has_value(); };
    ASSERT_TRUE(world.run_until(has_begun, seconds{10})) << world.log_tail();
    entry["cancel"] = true;
    world.patch_job(name, {{"control", {{"tasks", {entry}}}}});
    if (comes_with_a_leader) world.restart_operator();
    ASSERT_TRUE(ends(name)) << world.log_tail();
    EXPECT_EQ(array(name).cancelled, "1") << world.log_tail();
    EXPECT_EQ(array(name).succeeded, "2");
  }
  expect_no_violations(world);
}

// The Secret and the Service of a start go with its task, also if that waited again and was
// canceled.
TEST_F(ArrayTest, ACanceledTaskLeavesNothingOfItsLastStart) {
  json more = tasks("1-2");
  more["batch"] = {{"script", "#!/bin/sh\ntrue"}};
  world.apply(gang_job("script", 2, "60s", more));
  world.run_for(seconds{5});
  const auto count = [&](const std::string& kind) {
    const auto list =
        world.client().call_json(kube::Method::kGet, "/api/v1/namespaces/team-a/" + kind);
    return list.ok() ? (*list)["items"].size() : 99U;
  };
  ASSERT_EQ(count("secrets"), 2U) << world.log_tail();
  ASSERT_EQ(count("services"), 2U);
  json entry{{"tasks", "1"}, {"hold", true}, {"requeueRequest", 1}};
  world.patch_job("script", {{"control", {{"tasks", {entry}}}}});
  world.run_for(seconds{20});
  ASSERT_EQ(array("script").counts.running, 1) << world.log_tail();
  entry["cancel"] = true;
  world.patch_job("script", {{"control", {{"tasks", {entry}}}}});
  world.run_for(seconds{5});
  EXPECT_EQ(array("script").cancelled, "1");
  EXPECT_EQ(count("secrets"), 1U);
  EXPECT_EQ(count("services"), 1U);
}

// An entry that names too many tasks is illegal, and is an edit that no schema refuses.
json names_too_many() {
  const json entry{{"tasks", "0-9999"}, {"suspend", false}};
  return {{"tasks", {entry, entry}}};
}

// Tasks that run go on, and what has ended is known when the array is mended, over a change of
// leaders, too.
TEST_F(ArrayTest, OneThatBecomesIllegalWaitsUntilItIsMended) {
  world.apply(gang_job("sweep", 1, "6s", tasks("0-9", 2)));
  world.run_for(seconds{10});
  ASSERT_EQ(array("sweep").succeeded, "0-1") << world.log_tail();
  ASSERT_EQ(array("sweep").counts.running, 2);
  world.patch_job("sweep", {{"control", names_too_many()}});
  world.run_for(seconds{1});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("no other one starts"));
  world.restart_operator();
  world.run_for(seconds{30});
  EXPECT_EQ(array("sweep").summary, "4 of 10 done") << world.log_tail();
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("no other one starts"));
  world.patch_job("sweep", {{"control", {{"tasks", nullptr}}}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").succeeded, "0-9") << world.log_tail();
  for (const kube::Pod& pod : world.pods_of("sweep")) {
    EXPECT_EQ(pod.metadata.labels.at(std::string{kube::kLabelStart}), "1");
  }
  world.apply(gang_job("next", 5, "2s"));
  EXPECT_TRUE(ends("next")) << world.log_tail();
  expect_no_violations(world);
}

TEST_F(ArrayTest, OneThatHasBecomeIllegalIsCanceledWithItsTasks) {
  world.apply(gang_job("sweep", 1, "", tasks("0-9", 2)));
  world.run_for(seconds{5});
  json control = names_too_many();
  world.patch_job("sweep", {{"control", control}});
  world.run_for(seconds{1});
  control["cancel"] = true;
  world.patch_job("sweep", {{"control", control}});
  ASSERT_TRUE(ends("sweep")) << world.log_tail();
  EXPECT_EQ(array("sweep").cancelled, "0-9");
  EXPECT_EQ(live_pods("sweep"), 0U);
  world.apply(gang_job("next", 5, "2s"));
  EXPECT_TRUE(ends("next")) << world.log_tail();
  expect_no_violations(world);
}

TEST_F(ArrayTest, WhatMakesNoSenseIsRefusedWithASentence) {
  world.apply(gang_job("sweep", 1, "2s", tasks("5-1")));
  world.run_for(seconds{3});
  EXPECT_THAT(world.condition("Job", "sweep", "Accepted"), HasSubstr("spec.array.tasks"));
  json more = tasks("0-9");
  more["control"] = {{"tasks", {{{"tasks", "0-50000"}, {"hold", true}}}}};
  world.apply(gang_job("many", 1, "2s", more));
  more["control"]["tasks"][0]["tasks"] = "0-100000,0-100000,0-100000";
  world.apply(gang_job("repeated", 1, "2s", more));
  world.run_for(seconds{3});
  EXPECT_THAT(world.condition("Job", "many", "Accepted"), HasSubstr("names more than 10000 tasks"));
  EXPECT_THAT(world.condition("Job", "repeated", "Accepted"), HasSubstr("must list numbers"));
}

}  // namespace
}  // namespace control
