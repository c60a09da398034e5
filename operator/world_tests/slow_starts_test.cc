// Gangs of which a pod does not run yet: it waits for its kubelet, or works in an init container.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

class SlowStartsTest : public testing::Test {
 protected:
  void furnish(const json& more = nullptr) {
    json config = linear_config("4s");
    if (!more.is_null()) config["spec"].merge_patch(more);
    world_.apply(config);
    world_.apply(partition("batch", force()));
  }
  // Each of its pods has an init container.
  static json with_init(json job) {
    job["spec"]["template"]["spec"]["initContainers"] =
        json::array({{{"name", "fetch"}, {"image", "busybox"}}});
    return job;
  }
  std::string ready(const std::string& job) { return world_.condition("Job", job, "Ready"); }
  kube::Pod pod(const std::string& job, std::size_t index) {
    std::vector<kube::Pod> pods = world_.pods_of(job);
    std::ranges::sort(pods, {}, [](const kube::Pod& one) { return one.metadata.name; });
    return pods.at(index);
  }
  base::Duration ran(const kube::Pod& one) {
    return world_.node(*one.spec.node_name).ran(one.metadata.name);
  }

  World world_{{}};
};

// A sandbox that cannot be made, or a volume that cannot be mounted, shows as ContainerCreating
// forever. The job says which pod it waits for, and gives its nodes back after the cluster's time.
TEST_F(SlowStartsTest, AStartThatDoesNotGetOnIsHeldAndSaysWhichPodItWaitedFor) {
  furnish({{"startTimeout", "2m"}});
  world_.apply(gang_job("half", 2, "", {},
                        {{"test/waiting", "ContainerCreating"}, {"test/waiting-index", "1"}}));
  world_.run_for(seconds{50});
  EXPECT_EQ(ready("half"), "False: Starting: its pods are being started");
  world_.run_for(seconds{25});
  const kube::Pod stuck = pod("half", 1);
  const std::string why = "pod " + stuck.metadata.name + " on node " + *stuck.spec.node_name +
                          ": container main waits, ContainerCreating";
  EXPECT_EQ(ready("half"), "False: Starting: its pods are being started; " + why);
  world_.run_for(seconds{35});
  EXPECT_EQ(world_.state("half"), "Running");
  world_.run_for(seconds{40});
  EXPECT_EQ(world_.state("half"), "Pending") << world_.log_tail();
  const kube::JobStatus status = world_.job("half").status;
  EXPECT_EQ(status.reason, "LaunchFailedRequeuedHeld");
  EXPECT_EQ(status.message, "its pods did not all run within startTimeout: " + why);
  EXPECT_TRUE(world_.pods_of("half").empty());
}

// 30 min, so that an image of 30 GB comes.
TEST_F(SlowStartsTest, WithoutAnyConfigurationAStartHasHalfAnHour) {
  furnish();
  world_.tick = seconds{5};
  world_.apply(gang_job("half", 2, "", {}, {{"test/waiting", "ContainerCreating"}}));
  world_.run_for(minutes{29});
  EXPECT_EQ(world_.state("half"), "Running");
  world_.run_for(minutes{2});
  EXPECT_EQ(world_.state("half"), "Pending") << world_.log_tail();
}

// Otherwise a program that works in an init container would have no limit, and would cost nothing.
TEST_F(SlowStartsTest, TimeInInitContainersCountsForTheTimeLimit) {
  furnish();
  world_.apply(with_init(
      gang_job("cheat", 2, "", {{"schedule", {{"timeLimit", "1m"}}}}, {{"test/init", "20m"}})));
  world_.run_for(seconds{55});
  EXPECT_EQ(world_.state("cheat"), "Running");
  ASSERT_TRUE(world_.run_until([&] { return world_.state("cheat") == "Timeout"; }, seconds{45}))
      << world_.log_tail();
  const kube::JobStatus status = world_.job("cheat").status;
  ASSERT_TRUE(status.run_time.has_value());
  EXPECT_GE(status.run_time->elapsed, seconds{59});
  EXPECT_LE(status.run_time->elapsed, seconds{62});
}

// 30 s in an init container, then 3 s until it has settled and 20 s of work, which began meanwhile.
TEST_F(SlowStartsTest, RunTimeBeginsWithTheFirstContainerOfAnyKind) {
  furnish();
  world_.apply(with_init(gang_job("fetches", 2, "20s", {}, {{"test/init", "30s"}})));
  world_.run_for(seconds{30});
  // Nothing is written for it on the way.
  EXPECT_FALSE(world_.job("fetches").status.run_time.has_value());
  ASSERT_TRUE(world_.run_until([&] { return world_.state("fetches") == "Completed"; }, minutes{2}))
      << world_.log_tail();
  const base::Duration ran = world_.job("fetches").status.run_time->elapsed;
  EXPECT_GE(ran, seconds{49});
  EXPECT_LE(ran, seconds{53});
}

// architecture.md 2: pod 0 may wait in its init container for what pod 1 does, so pod 1 is not
// frozen before, although another gang has turns on the same nodes. After it the gang stands still
// until it is ready, as any other.
TEST_F(SlowStartsTest, NoPodIsFrozenWhileAnotherHasAnInitContainerToFinish) {
  furnish();
  world_.apply(gang_job("stays", 5, ""));
  world_.run_for(seconds{10});
  world_.apply(
      with_init(gang_job("waits", 5, "", {}, {{"test/init", "40s"}, {"test/init-index", "0"}})));
  world_.run_for(seconds{10});
  const auto is_listed = [&](const std::string& job) {
    const auto listed = world_.timetable("n14").spec.pods;
    return std::ranges::any_of(listed, [&](const auto& one) { return one.name.starts_with(job); });
  };
  const base::Duration before = ran(pod("waits", 1));
  EXPECT_FALSE(is_listed("waits"));
  world_.run_for(seconds{20});
  EXPECT_EQ(ran(pod("waits", 1)) - before, seconds{20}) << world_.log_tail();
  // A new leader sees the same.
  world_.restart_operator();
  world_.run_for(seconds{5});
  EXPECT_EQ(ran(pod("waits", 1)) - before, seconds{25}) << world_.log_tail();
  const auto is_ready = [&] { return ready("waits").starts_with("True"); };
  ASSERT_TRUE(world_.run_until(is_ready, seconds{20})) << world_.log_tail();
  EXPECT_TRUE(is_listed("waits"));
  const base::Duration ready_ran = ran(pod("waits", 1));
  world_.run_for(seconds{40});
  EXPECT_NEAR(std::chrono::duration<double>(ran(pod("waits", 1)) - ready_ran).count(), 20, 4);
}

// Whatever a node's clock says, its pods settle: here an hour ahead. The other gang has its turns
// on the same nodes, in which the pods of this one would stand still for that hour.
TEST_F(SlowStartsTest, ANodeWhoseClockIsAheadHoldsUpNothing) {
  furnish();
  world_.apply(gang_job("stays", 5, ""));
  world_.run_for(seconds{10});
  world_.apply(gang_job("ahead", 2, ""));
  world_.run_for(seconds{1});
  kube::Pod one = pod("ahead", 1);
  ASSERT_TRUE(one.status.container_statuses.at(0).state.running.has_value());
  *one.status.container_statuses[0].state.running->started_at += std::chrono::hours{1};
  const json statuses = kube::encode(one)["status"]["containerStatuses"];
  ASSERT_TRUE(world_.client()
                  .patch_status<kube::Pod>(kube::key_of(one.metadata),
                                           {{"status", {{"containerStatuses", statuses}}}})
                  .ok());
  const auto is_ready = [&] { return ready("ahead").starts_with("True"); };
  EXPECT_TRUE(world_.run_until(is_ready, seconds{10})) << world_.log_tail();
}

}  // namespace
}  // namespace control
