// Pods with claims, which kube-scheduler binds to the node that they are pinned to.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "operator/gang/pod_pin.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// There is no kube-scheduler in this World: the tests bind pods, or refuse them, in its place.
class Volumes : public ::testing::Test {
 protected:
  Volumes() : world_{{.nodes = {"n12", "n13"}}} {
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force("n[12-13]")));
  }
  // Submits a job whose pods use the claim "data", one pod on each of `nodes` nodes.
  void submit(int nodes) {
    const json volumes =
        json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
    world_.apply(gang_job("job", nodes, "10s", {{"template", {{"spec", {{"volumes", volumes}}}}}}));
    world_.run_for(seconds{2});
  }
  // Returns the nodes of the job's pods that are not bound yet.
  std::set<std::string> pinned() {
    std::set<std::string> nodes;
    for (const kube::Pod& pod : world_.pods_of("job")) {
      if (!pod.spec.node_name) nodes.insert(node_of(pod).value_or("none"));
    }
    return nodes;
  }
  // As kube-scheduler does once the volumes are there.
  void bind() {
    for (const kube::Pod& pod : world_.pods_of("job")) {
      if (pod.spec.node_name) continue;
      const json binding{{"apiVersion", "v1"},
                         {"kind", "Binding"},
                         {"metadata", {{"name", pod.metadata.name}}},
                         {"target", {{"kind", "Node"}, {"name", node_of(pod).value_or("")}}}};
      const auto bound = world_.client().call_json(
          kube::Method::kPost,
          "/api/v1/namespaces/" + pod.metadata.ns + "/pods/" + pod.metadata.name + "/binding",
          &binding);
      EXPECT_TRUE(bound.ok()) << bound.error().message;
    }
  }
  // As kube-scheduler says that it cannot place a pod.
  void refuse(const std::string& message) {
    for (const kube::Pod& pod : world_.pods_of("job")) {
      const json status{{"conditions", json::array({{{"type", "PodScheduled"},
                                                     {"status", "False"},
                                                     {"reason", "Unschedulable"},
                                                     {"message", message}}})}};
      EXPECT_TRUE(world_.client()
                      .patch_status<kube::Pod>(kube::key_of(pod.metadata), {{"status", status}})
                      .ok());
    }
  }
  World world_;
};

// Volumes are provisioned for the node that kube-scheduler binds a pod to, so a pod with a claim is
// pinned by affinity instead of bound at once. While it waits it is a started job's pod, and no new
// leader may make it a second time.
TEST_F(Volumes, PodsAreBoundByKubeSchedulerAndRun) {
  submit(2);
  const std::set<std::string> both{"n12", "n13"};
  EXPECT_EQ(pinned(), both) << world_.log_tail();
  world_.run_for(seconds{30});
  EXPECT_EQ(pinned(), both) << "provisioning takes its time";
  world_.restart_operator();  // a new leader knows where they belong
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.pods_of("job").size(), 2U) << world_.log_tail();
  EXPECT_EQ(world_.job("job").status.starts, 1);
  bind();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("job") == "Completed"; }, seconds{30}))
      << world_.log_tail();
  expect_no_violations(world_);
}

// After a minute, since kube-scheduler's first word may be wrong while a volume is made.
TEST_F(Volumes, ANodeThatTheVolumeCannotReachIsAvoided) {
  submit(1);
  const std::set<std::string> first = pinned();
  ASSERT_EQ(first.size(), 1U) << world_.log_tail();
  refuse("0/2 nodes are available: 1 node(s) had volume node affinity conflict.");
  world_.run_for(seconds{50});
  EXPECT_EQ(pinned(), first) << "it may still come";
  world_.run_for(seconds{15});
  EXPECT_EQ(pinned().size(), 1U) << world_.log_tail();
  EXPECT_NE(pinned(), first);
  bind();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("job") == "Completed"; }, seconds{30}))
      << world_.log_tail();
  expect_no_violations(world_);
}

// No node would help, and no time either: a person must create the claim. Without the hold the
// job would be started and undone in a circle, and keep nodes from others each time.
TEST_F(Volumes, AMissingClaimHoldsTheJob) {
  submit(1);
  refuse("0/2 nodes are available: persistentvolumeclaim \"data\" not found.");
  world_.run_for(seconds{70});
  EXPECT_EQ(world_.state("job"), "Pending") << world_.log_tail();
  const kube::JobStatus status = world_.job("job").status;
  ASSERT_TRUE(status.held.has_value());
  EXPECT_NE(status.message.find("persistentvolumeclaim \"data\" not found"), std::string::npos)
      << status.message;
  EXPECT_TRUE(world_.pods_of("job").empty());
}

// No kubelet knows of these pods, so none confirms their end; the deletion alone must be enough.
TEST_F(Volumes, AJobIsCancelledBeforeItsPodsAreBound) {
  submit(2);
  world_.patch_job("job", {{"control", {{"cancel", true}}}});
  EXPECT_TRUE(world_.run_until([&] { return world_.state("job") == "Cancelled"; }, seconds{10}))
      << world_.log_tail();
  EXPECT_TRUE(world_.pods_of("job").empty());
}

}  // namespace
}  // namespace control
