// Devices with a real kubelet and kube-scheduler: the plugin is a test's, and its devices do not
// exist (tools/device-plugin), but kubelet counts them, gives them to containers and notices when
// one fails. Each program writes down which devices it got.
#include <algorithm>
#include <fstream>
#include <set>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kFpga = "example.com/fpga";  // values.yaml: fpga

// Two GPUs on each of the first two nodes; the third has none.
class Devices : public Cluster {
 protected:
  void SetUp() override {
    Cluster::SetUp();
    if (ns_.empty()) return;
    for (const int place : {1, 2}) {
      start_plugin(place, kGpu, 2);
      ASSERT_NO_FATAL_FAILURE(wait_devices(place, kGpu, 2));
    }
  }
  void TearDown() override {
    for (const auto& [place, resource] : plugins_) plugin(place, "stop " + resource);
    for (const int place : {1, 2, 3}) {
      (void)call(kube::Method::kPatch, node_path(place),
                 {{"metadata", {{"labels", {{"nvidia.com/gpu.product", nullptr}}}}},
                  {"spec", {{"taints", nullptr}}}});
    }
    (void)call(kube::Method::kDelete, "/api/v1/persistentvolumes/" + name_of("data"));
    (void)call(kube::Method::kDelete, "/apis/storage.k8s.io/v1/storageclasses/" + name_of("late"));
    Cluster::TearDown();
  }

  // --- the plugins ---
  void plugin(int place, const std::string& act) {
    const Output done = script("node-device-plugin " + node(place).substr(1) + " " + act);
    EXPECT_EQ(done.exit_code, 0) << done.text;
  }
  void start_plugin(int place, const std::string& resource, int count) {
    plugin(place, "start " + resource + " " + std::to_string(count) + " " + unhealthy_file(place));
    plugins_.emplace(place, resource);
  }
  void stop_plugin(int place, const std::string& resource) {
    plugin(place, "stop " + resource);
    plugins_.erase({place, resource});
  }
  std::string unhealthy_file(int place) const { return stamps_in_ + "/unhealthy-" + node(place); }
  // As kubelet says.
  void wait_devices(int place, const std::string& resource, int count) {
    ASSERT_NO_FATAL_FAILURE(
        wait_until(node(place) + " has " + std::to_string(count) + " of " + resource, [&] {
          const json allocatable = get(node_path(place))["status"]["allocatable"];
          return allocatable.value(resource, "none") == std::to_string(count);
        }));
  }

  // --- jobs ---
  // Its programs write which devices they have, and stay.
  JobOptions with_devices(const std::string& name, std::int32_t nodes_count, int count,
                          const json& spec = json::object()) const {
    JobOptions options{.name = name,
                       .nodes_count = nodes_count,
                       .command = {"sh", "-c",
                                   "echo $E2E_DEVICES >/stamps/" + name +
                                       ".$NODE; trap 'exit 0' TERM; while :; do sleep 0.1; done"},
                       .patch = {{"spec", spec}}};
    json& devices = options.patch["spec"]["resources"]["devices"];
    if (devices.is_null()) devices = json::array({{{"name", "gpu"}, {"count", count}}});
    return options;
  }
  json on_place(int place) const { return {{"placement", {{"hostlist", node(place)}}}}; }
  // The first node alone has a partition of its own, so that statements about it concern no other
  // node.
  void make_partition_of_first_node() {
    ASSERT_NO_FATAL_FAILURE(
        make_lane_partition(name_of("one"), {{"nodes", {{"hostlist", node(1)}}}}));
  }
  // Returns a job of one GPU there.
  JobOptions with_one(const std::string& name) const {
    JobOptions options = with_devices(name, 1, 1);
    options.partition = name_of("one");
    return options;
  }
  // Returns the IDs that the job's program got there.
  std::set<std::string> devices_of(const std::string& name, int place) {
    std::ifstream in{stamps_in_ + "/" + name + "." + node(place)};
    std::set<std::string> found;
    for (std::string id; std::getline(in >> std::ws, id, ',');) {
      id.erase(id.find_last_not_of('\n') + 1);
      found.insert(id);
    }
    return found;
  }
  // It waits for devices, and gets no pods meanwhile.
  void expect_waits_for(const std::string& name, const std::string& words) {
    ASSERT_NO_FATAL_FAILURE(wait_until(name + " says that it needs " + words, [&] {
      return job(name).status.message.find(words) != std::string::npos;
    }));
    pass(seconds{2});
    EXPECT_EQ(state(name), "Pending") << status_text(name);
    EXPECT_TRUE(pods(name).empty());
  }

 private:
  std::set<std::pair<int, std::string>> plugins_;
};

const std::set<std::string> kBoth{"dev-0", "dev-1"};

// The nodes' cores are shared by turns, their GPUs are not: the second gang waits for both nodes,
// and a job without GPUs does not.
TEST_F(Devices, GangsOfTwoWaitForEachOther) {
  ASSERT_NO_FATAL_FAILURE(submit_ready(with_devices("first", 2, 2)));
  EXPECT_EQ(job("first").status.allocation->hostlist, nodes(1, 2));
  ASSERT_NO_FATAL_FAILURE(submit(with_devices("second", 2, 2)));
  ASSERT_NO_FATAL_FAILURE(expect_waits_for("second", "needs 2 GPUs on each node"));
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "cores"}));
  for (const int place : {1, 2}) EXPECT_EQ(devices_of("first", place), kBoth);
  ASSERT_NO_FATAL_FAILURE(cancel("first"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  for (const int place : {1, 2}) EXPECT_EQ(devices_of("second", place), kBoth);
}

// The real API server keeps the field. GPUs are free, and only those of its QOS are used up.
TEST_F(Devices, AreLimitedByAQos) {
  const json few{{"apiVersion", "kubegang.io/v1alpha1"},
                 {"kind", "QOS"},
                 {"metadata", {{"name", name_of("few")}}},
                 {"spec", {{"limits", {{"group", {{"resources", {{"gpus", 2}}}}}}}}}};
  const std::string path = "/apis/kubegang.io/v1alpha1/qos";
  ASSERT_TRUE(call(kube::Method::kPost, path, few).ok());
  const json of_few{{"schedule", {{"qos", name_of("few")}}}};
  ASSERT_NO_FATAL_FAILURE(submit_ready(with_devices("first", 2, 1, of_few)));
  ASSERT_NO_FATAL_FAILURE(submit(with_devices("second", 1, 1, of_few)));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "the second waits", [&] { return job("second").status.reason == "QOSGrpGRES"; }));
  ASSERT_NO_FATAL_FAILURE(submit_ready(with_devices("third", 1, 1)));
  ASSERT_NO_FATAL_FAILURE(cancel("first"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  (void)call(kube::Method::kDelete, path + "/" + name_of("few"));
}

// Also the one whose turn it is not keeps its own, and a third gets none.
TEST_F(Devices, OfOneNodeAreNeverSharedByJobsThatTakeTurns) {
  ASSERT_NO_FATAL_FAILURE(make_partition_of_first_node());
  for (const char* name : {"first", "second"}) {
    ASSERT_NO_FATAL_FAILURE(submit_ready(with_one(name)));
  }
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the first is frozen", [&] { return is_frozen(pod_on("first", node(1))); }));
  EXPECT_EQ(devices_of("first", 1).size(), 1U);
  EXPECT_EQ(devices_of("second", 1).size(), 1U);
  EXPECT_NE(devices_of("first", 1), devices_of("second", 1));
  ASSERT_NO_FATAL_FAILURE(submit(with_one("third")));
  ASSERT_NO_FATAL_FAILURE(expect_waits_for("third", "needs 1 GPU on one node"));
}

// The preemptor's pods are made when those of the victim are gone: kube-scheduler would find no
// devices before.
TEST_F(Devices, AreTakenFromAJobOfALowerTier) {
  for (const auto& [name, spec] :
       {std::pair{"low", json{{"preemptMode", "Requeue"}}}, {"high", json{{"priorityTier", 2}}}}) {
    json with_share = spec;
    with_share["overSubscribe"]["maxShare"] = 1;
    ASSERT_NO_FATAL_FAILURE(make_lane_partition(name_of(name), with_share));
  }
  JobOptions victim = with_devices("victim", 2, 2), urgent = with_devices("urgent", 2, 2);
  victim.partition = name_of("low");
  urgent.partition = name_of("high");
  ASSERT_NO_FATAL_FAILURE(submit_ready(victim));
  ASSERT_NO_FATAL_FAILURE(submit_ready(urgent));
  EXPECT_EQ(job("urgent").status.starts.value_or(0), 1) << "no start of it was undone";
  for (const int place : {1, 2}) EXPECT_EQ(devices_of("urgent", place), kBoth);
  EXPECT_EQ(state("victim"), "Pending");
  ASSERT_NO_FATAL_FAILURE(cancel("urgent"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim has started again", [&] {
    const kube::Job found = job("victim");
    return found.status.starts.value_or(0) == 2 && kube::is_true(found.status.conditions, "Ready");
  }));
}

// kubelet counts no device meanwhile. The job that has some goes on.
TEST_F(Devices, SurviveAPluginThatStartsAgain) {
  ASSERT_NO_FATAL_FAILURE(make_partition_of_first_node());
  ASSERT_NO_FATAL_FAILURE(submit_ready(with_one("first")));
  ASSERT_NO_FATAL_FAILURE(stop_plugin(1, kGpu));
  ASSERT_NO_FATAL_FAILURE(wait_devices(1, kGpu, 0));
  ASSERT_NO_FATAL_FAILURE(submit(with_one("second")));
  ASSERT_NO_FATAL_FAILURE(expect_waits_for("second", "1 GPU"));
  start_plugin(1, kGpu, 2);
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  EXPECT_NE(devices_of("first", 1), devices_of("second", 1));
  expect_undisturbed("first");
}

TEST_F(Devices, ThatFailAreNotGivenAway) {
  ASSERT_NO_FATAL_FAILURE(make_partition_of_first_node());
  ASSERT_NO_FATAL_FAILURE(submit_ready(with_one("first")));
  ASSERT_EQ(devices_of("first", 1).size(), 1U);
  const std::string other = devices_of("first", 1).contains("dev-0") ? "dev-1" : "dev-0";
  std::ofstream{unhealthy_file(1)} << other;
  ASSERT_NO_FATAL_FAILURE(wait_devices(1, kGpu, 1));
  ASSERT_NO_FATAL_FAILURE(submit(with_one("second")));
  ASSERT_NO_FATAL_FAILURE(expect_waits_for("second", "needs 1 GPU on one node"));
  std::ofstream{unhealthy_file(1)} << "";
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  EXPECT_EQ(devices_of("second", 1), std::set{other});
  expect_undisturbed("first");
}

// A foreign pod takes a device between the decision and kube-scheduler's binding, which waits here
// for a volume. kube-scheduler's message about the device undoes the start, long before the minute
// that volumes have, and the job gets another node.
TEST_F(Devices, ThatAPodOfOthersTakesUndoTheStartSoon) {
  ASSERT_TRUE(call(kube::Method::kPost, "/apis/storage.k8s.io/v1/storageclasses",
                   {{"apiVersion", "storage.k8s.io/v1"},
                    {"kind", "StorageClass"},
                    {"metadata", {{"name", name_of("late")}}},
                    {"provisioner", "kubernetes.io/no-provisioner"},
                    {"volumeBindingMode", "WaitForFirstConsumer"}})
                  .ok());
  const json claim{{"storageClassName", name_of("late")},
                   {"accessModes", {"ReadWriteOnce"}},
                   {"resources", {{"requests", {{"storage", "1Gi"}}}}}};
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                 {"kind", "PersistentVolumeClaim"},
                                 {"metadata", {{"name", "data"}, {"namespace", ns_}}},
                                 {"spec", claim}}));
  JobOptions options = with_devices("train", 1, 2);
  json spec = pod_spec_of(options);
  spec["volumes"].push_back({{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}});
  options.patch["spec"]["template"]["spec"] = spec;
  ASSERT_NO_FATAL_FAILURE(submit(options));
  ASSERT_NO_FATAL_FAILURE(wait_until("kube-scheduler looks for the volume", [&] {
    const std::vector<json> all = pods("train");
    return all.size() == 1 && all[0].dump().find("persistent volumes to bind") != std::string::npos;
  }));
  ASSERT_EQ(job("train").status.allocation->hostlist, node(1));

  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata", {{"name", "stranger"}, {"namespace", ns_}}},
             {"spec",
              {{"nodeName", node(1)},
               {"terminationGracePeriodSeconds", 0},
               {"tolerations", json::array({{{"operator", "Exists"}}})},
               {"containers", json::array({{{"name", "main"},
                                            {"image", kBusyboxImage},
                                            {"command", {"sleep", "600"}},
                                            {"resources", {{"limits", {{kGpu, "1"}}}}}}})}}}}));
  // Now the volume is there, and kube-scheduler looks at the pod again.
  ASSERT_NO_FATAL_FAILURE(apply(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata", {{"name", name_of("data")}}},
       {"spec",
        {{"capacity", {{"storage", "1Gi"}}},
         {"accessModes", {"ReadWriteOnce"}},
         {"storageClassName", name_of("late")},
         {"hostPath", {{"path", "/tmp/" + name_of("data")}, {"type", "DirectoryOrCreate"}}}}}}));
  const Instant from = now();
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "it is ready elsewhere", [&] { return is_ready("train"); }, seconds{40}));
  std::printf("ready elsewhere after %.1f s\n",
              std::chrono::duration<double>(now() - from).count());
  EXPECT_EQ(job("train").status.allocation->hostlist, node(2));
  EXPECT_EQ(devices_of("train", 2), kBoth);
  remove("/api/v1/namespaces/" + ns_ + "/pods/stranger");
}

// A taint named after the resource keeps others off; the runtime is one that the administrator
// allows.
TEST_F(Devices, OfATaintedNodeAreForJobsThatAskForSome) {
  (void)call(kube::Method::kPost, "/apis/node.k8s.io/v1/runtimeclasses",
             {{"apiVersion", "node.k8s.io/v1"},
              {"kind", "RuntimeClass"},
              {"metadata", {{"name", "e2e"}}},
              {"handler", "e2e"}});
  patch(node_path(2),
        {{"spec",
          {{"taints",
            json::array({{{"key", kGpu}, {"value", "present"}, {"effect", "NoSchedule"}}})}}}});
  JobOptions options = with_devices("train", 1, 2, on_place(2));
  options.patch["spec"]["template"]["spec"]["runtimeClassName"] = "e2e";
  ASSERT_NO_FATAL_FAILURE(submit_ready(options));
  EXPECT_EQ(pods("train")[0]["spec"].value("runtimeClassName", ""), "e2e");
  EXPECT_EQ(devices_of("train", 2), kBoth);
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "cores", .nodes_count = 1, .patch = {{"spec", on_place(2)}}}));
  options.name = "other";
  options.patch["spec"]["template"]["spec"]["runtimeClassName"] = "kata";
  ASSERT_NO_FATAL_FAILURE(submit(options));
  ASSERT_NO_FATAL_FAILURE(wait_until("the other runtime is refused", [&] {
    return job("other").status.message.find("runtimeClassName: \"kata\": is not allowed") !=
           std::string::npos;
  }));
  EXPECT_NE(state("cores"), "Running") << status_text("cores");
  EXPECT_TRUE(pods("cores").empty());
}

// By the SchedulerConfig: another resource is counted as fpga, and a product has another type than
// the words of its label.
TEST_F(Devices, OfOtherResourcesAndTypesAreThoseOfTheTable) {
  start_plugin(3, kFpga, 1);
  ASSERT_NO_FATAL_FAILURE(wait_devices(3, kFpga, 1));
  patch(node_path(2),
        {{"metadata", {{"labels", {{"nvidia.com/gpu.product", "Quadro-RTX-8000"}}}}}});
  const auto asked = [](const json& device) {
    return json{{"resources", {{"devices", json::array({device})}}}};
  };
  ASSERT_NO_FATAL_FAILURE(
      submit_ready(with_devices("card", 1, 1, asked({{"name", "fpga"}, {"count", 1}}))));
  EXPECT_EQ(devices_of("card", 3), std::set<std::string>{"dev-0"});
  ASSERT_NO_FATAL_FAILURE(submit_ready(
      with_devices("typed", 1, 1, asked({{"name", "gpu"}, {"type", "big"}, {"count", 1}}))));
  EXPECT_EQ(devices_of("typed", 2).size(), 1U);
  const Output refused =
      run_shell(kubectl_gang("submit --namespace " + ns_ + " --gres=nic:1 --wrap true"));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.text.find("the cluster counts fpga, gpu"), std::string::npos) << refused.text;
}

}  // namespace
}  // namespace kubernetes
