// Tests of what jobs have used, as their launchers say in termination messages: in the status of
// the Job with the write that ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kUsed =
    R"({"kubegangUsage":1,"userCPU":"4.5s","systemCPU":"0.25s","maxRSS":"8388608",)"
    R"("memoryPeak":"16777216","steps":[{"id":"batch","name":"batch","tasks":1,"exitCode":0,)"
    R"("startTime":"2026-01-01T00:00:10.000000Z","elapsed":"9.5s","userCPU":"4.5s",)"
    R"("systemCPU":"0.25s","maxRSS":"8388608"}],"moreSteps":2})";

const json kScript{{"script", "#!/bin/sh\n"}};

json script(const std::string& name, int nodes, const std::string& work, const json& more = nullptr,
            const std::string& message = kUsed) {
  json batch{{"batch", {{"script", "#!/bin/sh\n"}}}};
  if (more.is_object()) batch.merge_patch(more);
  return gang_job(name, nodes, work, batch, {{"test/usage", message}});
}

class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    json config = linear_config("4s");
    config["spec"]["requeue"] = {{"delay", "20s"}};
    world.apply(config);
    world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  }
  bool is(const std::string& name, const std::string& state) {
    return world.run_until([&] { return world.state(name) == state; }, minutes{2});
  }
  std::optional<kube::JobUsage> usage(const std::string& name) const {
    return world.job(name).status.usage;
  }
  World world{{}};
};

TEST_F(UsageTest, IsInTheWriteThatEndsTheJob) {
  world.apply(script("one", 1, "10s"));
  ASSERT_TRUE(is("one", "Completed")) << world.log_tail();
  ASSERT_TRUE(usage("one"));
  EXPECT_EQ(usage("one")->user_cpu, std::chrono::milliseconds{4'500});
  EXPECT_EQ(usage("one")->system_cpu, std::chrono::milliseconds{250});
  EXPECT_EQ(usage("one")->max_rss, kube::Bytes{8 << 20});
  EXPECT_EQ(usage("one")->memory_peak, kube::Bytes{16 << 20});
  EXPECT_EQ(usage("one")->steps.size(), 1U);
  EXPECT_EQ(usage("one")->more_steps, 2);
  expect_no_violations(world);
}

// The launcher of the first pod speaks for all: its message alone counts.
TEST_F(UsageTest, OfAGangIsWhatItsFirstPodSays) {
  world.apply(script("wide", 3, "10s"));
  ASSERT_TRUE(is("wide", "Completed")) << world.log_tail();
  ASSERT_TRUE(usage("wide"));
  EXPECT_EQ(usage("wide")->user_cpu, std::chrono::milliseconds{4'500});
}

TEST_F(UsageTest, OfAJobThatIsCanceledIsKnownToo) {
  world.apply(script("gone", 1, ""));
  ASSERT_TRUE(is("gone", "Running")) << world.log_tail();
  world.run_for(seconds{10});
  world.patch_job("gone", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(is("gone", "Cancelled")) << world.log_tail();
  EXPECT_TRUE(usage("gone"));
}

// It belongs to the last start until the next one begins.
TEST_F(UsageTest, OfAJobThatIsRequeuedGoesWithItsNextStart) {
  world.apply(script("again", 1, ""));
  ASSERT_TRUE(is("again", "Running")) << world.log_tail();
  EXPECT_FALSE(usage("again"));
  world.run_for(seconds{10});
  world.patch_job("again", {{"control", {{"requeueRequest", 1}}}});
  ASSERT_TRUE(is("again", "Pending")) << world.log_tail();
  EXPECT_TRUE(usage("again"));
  ASSERT_TRUE(is("again", "Running")) << world.log_tail();
  EXPECT_FALSE(usage("again"));
}

// Records alone ask for it.
TEST_F(UsageTest, OfTasksIsInTheWriteThatSaysThatTheyHaveEnded) {
  world.process().loop().wait_for_records({"kubegang-system", "kubegang-records"});
  world.apply(script("sweep", 1, "10s", {{"array", {{"tasks", "3,7"}}}}));
  const auto array = [&] { return world.job("sweep").status.array.value_or(kube::ArrayStatus{}); };
  ASSERT_TRUE(world.run_until([&] { return array().counts.succeeded > 0; }, minutes{2}))
      << world.log_tail();
  ASSERT_FALSE(array().ended.empty());
  EXPECT_EQ(array().ended.front().usage->user_cpu, std::chrono::milliseconds{4'500});
  EXPECT_EQ(array().ended.front().usage->steps.size(), 1U);
  EXPECT_EQ(array().ended.front().usage->more_steps, 2);
  for (const kube::TaskEnd& task : array().ended) EXPECT_THAT(task.task, testing::AnyOf(3, 7));
  EXPECT_TRUE(is("sweep", "Completed")) << world.log_tail();
}

TEST_F(UsageTest, OfATaskThatIsRequeuedGoesWithItsNextStart) {
  world.apply(script("sweep", 1, "", {{"array", {{"tasks", "3"}}}}));
  const auto task = [&] {
    const auto array = world.job("sweep").status.array.value_or(kube::ArrayStatus{});
    return array.tasks.empty() ? kube::ArrayTask{} : array.tasks.front();
  };
  const auto runs = [&] { return task().start_time.has_value(); };
  ASSERT_TRUE(world.run_until(runs, minutes{2})) << world.log_tail();
  EXPECT_FALSE(task().usage);
  world.run_for(seconds{10});
  world.patch_job("sweep", {{"control", {{"tasks", {{{"tasks", "3"}, {"requeueRequest", 1}}}}}}});
  ASSERT_TRUE(world.run_until([&] { return task().restarts == 1; }, minutes{2}))
      << world.log_tail();
  ASSERT_TRUE(task().usage);
  EXPECT_EQ(task().usage->user_cpu, std::chrono::milliseconds{4'500});
  ASSERT_TRUE(world.run_until(runs, minutes{2})) << world.log_tail();
  EXPECT_FALSE(task().usage);
}

// The pod of a job without a script has no launcher, whatever it says.
TEST_F(UsageTest, IsThatOfScriptsAlone) {
  world.apply(gang_job("plain", 1, "10s", nullptr, {{"test/usage", kUsed}}));
  ASSERT_TRUE(is("plain", "Completed")) << world.log_tail();
  EXPECT_FALSE(usage("plain"));
}

// The kernel, or kubelet, kills all of the container: the launcher says nothing of its use.
TEST_F(UsageTest, AScriptThatRunsOutOfMemoryEndsAsOutOfMemory) {
  world.apply(
      gang_job("big", 2, "10s", {{"batch", {{"script", "#!/bin/sh\n"}}}}, {{"test/oom", "true"}}));
  ASSERT_TRUE(is("big", "OutOfMemory")) << world.log_tail();
  EXPECT_EQ(world.job("big").status.exit_code, 137);
  expect_no_violations(world);
}

// Returns a script whose launcher ends as after `scontrol requeue`; the other pods only wait.
json requeues_itself(const std::string& name, const json& spec, const std::string& exit_code) {
  std::string wish{kUsed};
  wish.insert(wish.rfind('}'), R"(,"requeue":true)");
  return gang_job(name, 2, "10s", spec,
                  {{"test/usage", wish}, {"test/exit-code", exit_code}, {"test/only-pod", "0"}});
}

// A script that calls `scontrol requeue` in its pod is requeued as by its user, each time after the
// delay of requeues.
TEST_F(UsageTest, AScriptMayRequeueItsOwnJob) {
  world.apply(requeues_itself("again", {{"batch", kScript}}, "143"));
  const auto restarts = [&] { return world.job("again").status.restarts.value_or(0); };
  for (const int count : {1, 2}) {
    ASSERT_TRUE(world.run_until([&] { return restarts() == count; }, minutes{2}))
        << world.log_tail();
    EXPECT_EQ(world.state("again"), "Pending");
    EXPECT_TRUE(usage("again")) << "of that start";
    const base::Instant since = world.clock().wall();
    ASSERT_TRUE(is("again", "Running")) << world.log_tail();
    EXPECT_GE(world.clock().wall() - since, seconds{19});
  }
  expect_no_violations(world);
}

TEST_F(UsageTest, AWishToRunAgainThatIsForbiddenIsAnEnd) {
  world.apply(
      requeues_itself("once", {{"batch", kScript}, {"lifecycle", {{"requeue", false}}}}, "143"));
  ASSERT_TRUE(is("once", "Failed")) << world.log_tail();
  EXPECT_EQ(world.job("once").status.restarts.value_or(0), 0);
}

// The launcher ends so that its container has failed; others have no launcher.
TEST_F(UsageTest, OnlyAScriptThatHasFailedWishesToRunAgain) {
  world.apply(requeues_itself("done", {{"batch", kScript}}, "0"));
  world.apply(requeues_itself("plain", nullptr, "143"));
  EXPECT_TRUE(is("done", "Completed")) << world.log_tail();
  EXPECT_TRUE(is("plain", "Failed")) << world.log_tail();
}

// Any program in the container can write the message.
TEST_F(UsageTest, IsUnknownIfTheMessageIsHostile) {
  const std::string begin = R"({"kubegangUsage":1,)";
  const std::string hostile[] = {
      begin + std::string(4'000, '{'),
      begin + R"("userCPU":"-1s"})",
      begin + R"("maxRSS":"9000Pi"})",
      begin + R"("steps":[{"id":"0","name":"\u001b[2J","startTime":"2026-01-01T00:00:10Z"}]})",
      begin + std::string(60'000, ' ') + std::string{kUsed}.substr(begin.size()),
      std::string(60'000, 'x'),
  };
  for (std::size_t i = 0; i < std::size(hostile); ++i) {
    world.apply(script("hostile-" + std::to_string(i), 1, "2s", nullptr, hostile[i]));
  }
  for (std::size_t i = 0; i < std::size(hostile); ++i) {
    const std::string name = "hostile-" + std::to_string(i);
    ASSERT_TRUE(is(name, "Completed")) << name << world.log_tail();
    EXPECT_FALSE(usage(name)) << name;
  }
  expect_no_violations(world);
}

}  // namespace
}  // namespace control
