// Pods that stand still for long say so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using std::chrono::seconds;

// A job on all five nodes, running; a note is due when it has stood still for 30 s.
class SuspendedPods : public ::testing::Test {
 protected:
  SuspendedPods() : world_{{}} {
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("job", 5, ""));
    world_.run_for(seconds{10});
  }
  // Returns the reason that all pods of the job give; "" if none does.
  std::string note() {
    std::string reason;
    int count = 0;
    for (const kube::Pod& pod : world_.pods_of("job")) {
      const auto* note = kube::find_condition(pod.status.conditions, kube::kPodSuspended);
      if (note == nullptr) continue;
      ++count;
      reason = note->reason;
      EXPECT_NE(kube::find_condition(pod.status.conditions, "Initialized"), nullptr)
          << "conditions of others stay";
    }
    EXPECT_TRUE(count == 0 || count == 5) << count;
    return reason;
  }
  // As kubelet writes it: the operator's note must be merged in and not replace the list.
  void set_other_condition() {
    for (const kube::Pod& pod : world_.pods_of("job")) {
      const nlohmann::json status{
          {"conditions", nlohmann::json::array({{{"type", "Initialized"}, {"status", "True"}}})}};
      EXPECT_TRUE(world_.client()
                      .patch_status<kube::Pod>(kube::key_of(pod.metadata), {{"status", status}})
                      .ok());
    }
  }
  World world_;
};

// On the pod itself nothing else shows it: to kubelet frozen processes run and are ready.
TEST_F(SuspendedPods, SaySoWhenTheirUserSuspendsTheJob) {
  set_other_condition();
  world_.patch_job("job", {{"control", {{"suspend", true}}}});
  world_.run_for(seconds{20});
  EXPECT_EQ(world_.state("job"), "Suspended");
  EXPECT_EQ(note(), "") << "it may be short";
  world_.run_for(seconds{15});
  EXPECT_EQ(note(), "User") << world_.log_tail();
  world_.patch_job("job", {{"control", {{"suspend", false}}}});
  world_.run_for(seconds{5});
  EXPECT_EQ(note(), "") << world_.log_tail();
}

// They are too short to read, and would be two writes per pod and turn.
TEST_F(SuspendedPods, SayNothingOfTurns) {
  world_.apply(gang_job("other", 5, ""));
  world_.run_for(seconds{120});
  EXPECT_NE(world_.job("job").status.suspend_time->elapsed, base::Duration{0});
  EXPECT_EQ(note(), "");
}

// One of two gangs that take turns is between its turns when a job of a higher tier comes. It has
// none to come, like the one that runs, so both say for what they stand still, until it has gone.
TEST_F(SuspendedPods, SayThatTheirTurnDoesNotComeSinceAJobOfAHigherTierRuns) {
  set_other_condition();
  world_.apply(gang_job("other", 5, ""));
  world_.apply(partition("high", force("n[12-16]", {{"priorityTier", 9}, {"default", false}})));
  world_.run_for(seconds{21});
  world_.apply(gang_job("urgent", 5, "", {{"partitions", nlohmann::json::array({"high"})}}));
  world_.run_for(seconds{40});
  for (const std::string name : {"job", "other"}) {
    EXPECT_EQ(world_.state(name), "Suspended");
    EXPECT_EQ(world_.job(name).status.reason, "Preempted") << name;
  }
  EXPECT_EQ(note(), "Preempted") << world_.log_tail();
  world_.remove_job("urgent");
  world_.run_for(seconds{20});
  for (const std::string name : {"job", "other"}) {
    EXPECT_NE(world_.job(name).status.reason, "Preempted") << name;
  }
  EXPECT_EQ(note(), "");
}

// The job is resumed while no operator runs, so no process has seen the change: the note is
// compared with the job's state, and not with what was done before.
TEST_F(SuspendedPods, AreSetRightByANewLeader) {
  set_other_condition();
  world_.patch_job("job", {{"control", {{"suspend", true}}}});
  world_.run_for(seconds{40});
  EXPECT_EQ(note(), "User");
  world_.take_process().reset();
  world_.patch_job("job", {{"control", {{"suspend", false}}}});
  world_.restart_operator();
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.state("job"), "Running");
  EXPECT_EQ(note(), "") << world_.log_tail();
}

}  // namespace
}  // namespace control
