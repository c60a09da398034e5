// GPUs that pod templates ask for themselves: counted once, in kubegang Jobs, batch Jobs and gated
// pods, as an API server, the informers and kube-scheduler show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "operator/gang/pod_pin.h"
#include "operator/testing/batch_job_fixture.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

json gpus(int count) {
  return {{"limits", {{"nvidia.com/gpu", std::to_string(count)}}},
          {"requests", {{"nvidia.com/gpu", std::to_string(count)}}}};
}

// A partition of two nodes whose jobs share nodes; only n12 has GPUs, four of them.
void furnish(World& world) {
  json config = linear_config("4s");
  config["spec"]["killWait"] = "2s";
  world.apply(config);
  world.apply(partition("batch", force("n[12-13]")));
  const json gpu_node{{"status", {{"allocatable", {{"nvidia.com/gpu", "4"}}}}}};
  ASSERT_TRUE(world.client().patch_status<kube::Node>({"", "n12"}, gpu_node).ok());
  const json taint{{"key", "nvidia.com/gpu"}, {"value", "present"}, {"effect", "NoSchedule"}};
  ASSERT_TRUE(world.client()
                  .patch<kube::Node>({"", "n12"}, {{"spec", {{"taints", json::array({taint})}}}})
                  .ok());
  world.run_for(seconds{2});
}

class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() { furnish(world_); }

  void submit(const std::string& name, int count) {
    json container{{"name", "main"}, {"image", "busybox"}, {"resources", gpus(count)}};
    world_.apply(gang_job(name, 1, "10m",
                          {{"template", {{"spec", {{"containers", json::array({container})}}}}}}));
  }
  World world_{{.kube_scheduler = true}};
};

// Both could take turns on the CPUs of n12, but not on its GPUs; n13 has none.
TEST_F(DevicesTest, OfATemplateAreHeldUntilTheJobEnds) {
  submit("first", 3);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("first") == "Running"; }, minutes{1}))
      << world_.log_tail();
  submit("second", 2);
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("second"), "Pending") << world_.log_tail();
  EXPECT_THAT(world_.pods_of("second"), SizeIs(0));
  ASSERT_THAT(world_.pods_of("first"), SizeIs(1));
  EXPECT_EQ(node_of(world_.pods_of("first")[0]), "n12");
  const kube::Allocation held = world_.job("first").status.allocation.value();
  EXPECT_EQ(held.shares[0].devices, (std::vector<kube::JobDevice>{{"gpu", "nvidia", 3}}));
  world_.restart_operator();  // its informers keep no templates
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("second"), "Pending") << world_.log_tail();
  world_.patch_job("first", {{"control", {{"cancel", true}}}});
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{1}))
      << world_.log_tail();
  expect_no_violations(world_);
}

// n12 has four GPUs and n13 two. The scheduler shares five out, and each pod asks for those of its
// node; a pod for each task for those of the task. Limits of a QOS count them.
TEST(DevicesOfJobs, AreSharedOutAndAskedForByThePodsOfEachNode) {
  World world{{.kube_scheduler = true}};
  furnish(world);
  json config = linear_config("4s");
  config["spec"]["select"] = {{"type", "ConsTres"}};
  world.apply(config);
  world.apply({{"apiVersion", "kubegang.io/v1alpha1"},
               {"kind", "QOS"},
               {"metadata", {{"name", "few"}}},
               {"spec", {{"limits", {{"perNamespace", {{"resources", {{"gpus", 4}}}}}}}}}});
  const json gpu_node{{"status", {{"allocatable", {{"nvidia.com/gpu", "2"}}}}}};
  ASSERT_TRUE(world.client().patch_status<kube::Node>({"", "n13"}, gpu_node).ok());
  world.run_for(seconds{2});
  const auto asked_of = [&](const std::string& job) {
    std::map<std::string, std::string> asked;
    for (const kube::Pod& pod : world.pods_of(job)) {
      const auto& limits = pod.spec.containers[0].resources.limits;
      const auto found = limits.find("nvidia.com/gpu");
      asked[node_of(pod).value_or("")] +=
          found == limits.end() ? "-" : std::to_string(found->second.milli() / 1000);
    }
    return asked;
  };
  using Asked = std::map<std::string, std::string>;
  const auto gpus_of = [](int count) { return json::array({{{"name", "gpu"}, {"count", count}}}); };
  world.apply(gang_job("spread", 2, "10m", {{"resources", {{"devicesOfJob", gpus_of(5)}}}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("spread") == "Running"; }, minutes{1}))
      << world.log_tail();
  EXPECT_EQ(asked_of("spread"), (Asked{{"n12", "4"}, {"n13", "1"}}));
  world.restart_operator();
  world.patch_job("spread", {{"control", {{"cancel", true}}}});
  world.apply(gang_job("tasks", 1, "10m",
                       {{"resources", {{"tasks", 2}, {"devicesPerTask", gpus_of(2)}}},
                        {"podPolicy", "PerTask"},
                        {"schedule", {{"qos", "few"}}}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("tasks") == "Running"; }, minutes{1}))
      << world.log_tail();
  EXPECT_EQ(asked_of("tasks"), (Asked{{"n12", "22"}}));
  world.apply(gang_job("third", 1, "10m",
                       {{"resources", {{"devices", gpus_of(1)}}}, {"schedule", {{"qos", "few"}}}}));
  world.run_for(seconds{20});
  EXPECT_EQ(world.job("third").status.reason, "QOSMaxGRESPerUser") << world.log_tail();
  expect_no_violations(world);
}

// gpu-feature-discovery names the product while a job has its GPUs: the job holds them under their
// old name, in the scheduler and, after a restart, in its status.
TEST_F(DevicesTest, AreHeldWhenTheirNodeGetsItsProductsLabel) {
  submit("first", 3);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("first") == "Running"; }, minutes{1}))
      << world_.log_tail();
  const json label{{"metadata", {{"labels", {{"nvidia.com/gpu.product", "Tesla-T4"}}}}}};
  ASSERT_TRUE(world_.client().patch<kube::Node>({"", "n12"}, label).ok());
  world_.run_for(seconds{5});
  submit("second", 2);
  submit("third", 1);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("third") == "Running"; }, minutes{1}))
      << world_.log_tail();
  EXPECT_EQ(world_.state("second"), "Pending");
  const auto held = [&](const std::string& name) {
    return world_.job(name).status.allocation.value().shares[0].devices;
  };
  EXPECT_EQ(held("first"), (std::vector<kube::JobDevice>{{"gpu", "nvidia", 3}}));
  EXPECT_EQ(held("third"), (std::vector<kube::JobDevice>{{"gpu", "nvidia-tesla-t4", 1}}));
  world_.restart_operator();
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("second"), "Pending") << world_.log_tail();
  EXPECT_THAT(world_.pods_of("second"), SizeIs(0));
  world_.patch_job("first", {{"control", {{"cancel", true}}}});
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{1}))
      << world_.log_tail();
  expect_no_violations(world_);
}

// kube-scheduler knows of a pod that the operator has not seen, or of a device that has failed.
TEST(DevicesUnbound, UndoTheStartSoon) {
  World world{{}};
  furnish(world);
  json container{{"name", "main"}, {"image", "busybox"}, {"resources", gpus(2)}};
  world.apply(gang_job("train", 1, "10m",
                       {{"template", {{"spec", {{"containers", json::array({container})}}}}}}));
  world.run_for(seconds{3});
  ASSERT_THAT(world.pods_of("train"), SizeIs(1)) << world.log_tail();
  const json no_room{{"type", "PodScheduled"},
                     {"status", "False"},
                     {"reason", "Unschedulable"},
                     {"message", "0/2 nodes are available: 1 Insufficient nvidia.com/gpu."}};
  ASSERT_TRUE(world.client()
                  .patch_status<kube::Pod>(kube::key_of(world.pods_of("train")[0].metadata),
                                           {{"status", {{"conditions", json::array({no_room})}}}})
                  .ok());
  world.run_for(seconds{4});
  EXPECT_THAT(world.pods_of("train"), SizeIs(1)) << "it may still come";
  world.run_for(seconds{4});
  EXPECT_THAT(world.pods_of("train"), SizeIs(0)) << world.log_tail();
  EXPECT_EQ(world.state("train"), "Pending");
}

// A template may ask for them before an administrator has written their entry; a job that was
// refused is judged again then. After that they are counted as GPUs are, also by a new leader.
TEST_F(DevicesTest, OfTheTableAreCountedFromTheirEntryOn) {
  const json fpgas{{"status", {{"allocatable", {{"example.com/fpga", "2"}}}}}};
  ASSERT_TRUE(world_.client().patch_status<kube::Node>({"", "n13"}, fpgas).ok());
  const auto submit_fpgas = [&](const std::string& name, const char* count) {
    const json container{{"name", "main"},
                         {"image", "busybox"},
                         {"resources", {{"limits", {{"example.com/fpga", count}}}}}};
    world_.apply(gang_job(
        name, 1, "10m",
        {{"template",
          {{"spec", {{"runtimeClassName", "cards"}, {"containers", json::array({container})}}}}}}));
  };
  submit_fpgas("first", "2");
  world_.run_for(seconds{5});
  EXPECT_THAT(world_.job("first").status.message,
              HasSubstr("\"example.com/fpga\": devices of this kind are not counted"));
  EXPECT_THAT(world_.job("first").status.message, HasSubstr("runtimeClassName: \"cards\""));
  json config = linear_config("4s");
  config["spec"]["devices"]["resources"] =
      json::array({{{"resource", "example.com/fpga"}, {"name", "fpga"}}});
  config["spec"]["runtimeClasses"] = json::array({"cards"});
  world_.apply(config);
  ASSERT_TRUE(world_.run_until([&] { return world_.state("first") == "Running"; }, minutes{1}))
      << world_.log_tail();
  EXPECT_EQ(node_of(world_.pods_of("first")[0]), "n13");
  submit_fpgas("second", "1");
  world_.restart_operator();
  world_.run_for(seconds{20});
  EXPECT_EQ(world_.state("second"), "Pending") << world_.log_tail();
  EXPECT_THAT(world_.job("second").status.message, HasSubstr("needs 1 fpga"));
  world_.patch_job("first", {{"control", {{"cancel", true}}}});
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Running"; }, minutes{1}))
      << world_.log_tail();
  expect_no_violations(world_);
}

// Two pods of one GPU each on one node, as the annotation says, and another Job for which one GPU
// is too few.
TEST_F(DevicesTest, OfABatchJobAreCounted) {
  const auto create = [&](const std::string& name, int count) {
    json made = make_batch_job(name, {.parallelism = 2, .completions = 2}, "30s", nullptr, nullptr);
    made["metadata"]["annotations"]["kubegang.io/nodes"] = "1";
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = gpus(count);
    const auto stored = world_.client().create_json<kube::BatchJob>(kTeam, made);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
  };
  const auto active = [&](const std::string& name) {
    const auto found = world_.client().get<kube::BatchJob>({kTeam, name});
    return found.ok() ? found->status.active : -1;
  };
  create("train", 1);
  ASSERT_TRUE(world_.run_until([&] { return active("train") == 2; }, minutes{1}))
      << world_.log_tail();
  for (const kube::Pod& pod : world_.pods()) EXPECT_EQ(node_of(pod), "n12");
  create("tune", 2);
  world_.run_for(seconds{10});
  EXPECT_EQ(active("tune"), 0) << world_.log_tail();
  ASSERT_TRUE(world_.run_until([&] { return active("tune") == 2; }, minutes{3}))
      << world_.log_tail();
  expect_no_violations(world_);
}

json gated_pod(const std::string& name) {
  const json container{{"name", "main"},
                       {"image", "busybox"},
                       {"resources",
                        {{"requests", {{"cpu", "1m"}, {"nvidia.com/gpu", "4"}}},
                         {"limits", {{"cpu", "1"}, {"nvidia.com/gpu", "4"}}}}}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", kTeam},
            {"labels", {{"kubegang.io/job-name", name}}},
            {"annotations", {{"kubegang.io/pods", "1"}}}}},
          {"spec",
           {{"restartPolicy", "Never"},
            {"schedulingGates", json::array({{{"name", "kubegang.io/gang"}}})},
            {"tolerations", json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}})},
            {"containers", json::array({container})}}}};
}

// The owner of gated pods makes others for those that it deletes; the operator never does.
TEST(DevicesUnbound, OfGatedPodsEndTheGangAsLost) {
  World world{{}};
  furnish(world);
  ASSERT_TRUE(world.client().create_json<kube::Pod>(kTeam, gated_pod("one")).ok());
  world.run_for(seconds{5});
  ASSERT_TRUE(world.client().create_json<kube::Pod>(kTeam, gated_pod("two")).ok());
  world.run_for(seconds{10});
  const auto pod = [&](const std::string& name) {
    return world.client().get<kube::Pod>({kTeam, name}).value();
  };
  EXPECT_EQ(node_of(pod("one")), "n12") << world.log_tail();
  EXPECT_FALSE(node_of(pod("two")).has_value()) << "all GPUs are taken";
  const json no_room{{"type", "PodScheduled"},
                     {"status", "False"},
                     {"reason", "Unschedulable"},
                     {"message", "0/2 nodes are available: 1 Insufficient nvidia.com/gpu."}};
  ASSERT_TRUE(world.client()
                  .patch_status<kube::Pod>({kTeam, "one"},
                                           {{"status", {{"conditions", json::array({no_room})}}}})
                  .ok());
  world.run_for(seconds{8});
  kube::Job job;
  const auto jobs = world.client().list<kube::Job>();
  ASSERT_TRUE(jobs.ok());
  for (const kube::Job& each : jobs->items) {
    if (each.metadata.labels.at("kubegang.io/job-name") == "one") job = each;
  }
  ASSERT_TRUE(job.status.ending.has_value()) << world.log_tail();
  EXPECT_EQ(kube::to_string(job.status.ending->verdict), "NodeFail");
  EXPECT_THAT(job.status.message, HasSubstr("Insufficient nvidia.com/gpu"));
  // The pod's place is held until its owner deletes it.
  EXPECT_FALSE(node_of(pod("two")).has_value());
  EXPECT_TRUE(world.client().remove<kube::Pod>({kTeam, "one"}).ok());
  world.run_for(seconds{20});
  EXPECT_EQ(node_of(pod("two")), "n12") << world.log_tail();
}

}  // namespace
}  // namespace control
