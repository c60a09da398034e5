// The process kubelet against the in-memory API server, with real processes in real cgroups.
#include "e2e/devcluster/kubelet/kubelet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "e2e/devcluster/testing/eventually.h"
#include "kube/clock.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"

namespace devcluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Goal: pods have the lives that they have under a real kubelet, as far as the operator and the
// agent rely on it. Method: both threads of the kubelet run; the test writes pods into the API
// server and looks at their statuses and their processes. Each test runs on cgroup v1 and v2, and
// is skipped if the machine lets it write to neither. After each test no process is left below the
// test's cgroup.
class KubeletTest : public testing::TestWithParam<os::CgroupVersion> {
 protected:
  void SetUp() override {
    const auto root =
        os::make_cgroup_root(GetParam(), "kubegang-kubelet-test-" + std::to_string(::getpid()));
    if (!root.ok()) GTEST_SKIP() << root.error().message;
    root_ = *root;
    std::string pattern = testing::TempDir() + "kubelet-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    kubelet_ = std::make_unique<Kubelet>(
        clock_, transport_,
        // n1 has the default size; n2 has one CPU, so it is full soon, and two GPUs.
        KubeletConfig{
            .nodes = {{.name = "n1"}, {.name = "n2", .cpu = kube::MilliCpu{1000}, .gpus = 2}},
            .cgroup = root_,
            .log_directory = directory_,
            // Shows that variables of the configuration are expanded for each pod.
            .environment = {{"WHERE", "$(NODE)/$(POD)"}}});
    const base::Status registered = kubelet_->register_nodes();
    ASSERT_TRUE(registered.ok()) << registered.error().message;
    feed_ = std::jthread{[this](std::stop_token stop) { kubelet_->follow_pods(stop); }};
    loop_ = std::jthread{[this](std::stop_token stop) {
      while (!stop.stop_requested()) kubelet_->step(milliseconds{100});
    }};
  }

  // In the order of the destructor of a devcluster: the threads must be out of the kubelet before
  // it goes.
  void TearDown() override {
    if (!kubelet_) return;
    feed_.request_stop();
    loop_.request_stop();
    kubelet_->wake();
    feed_.join();
    loop_.join();
    kubelet_.reset();
    // Whatever a test has left running was ended by the kubelet's destructor.
    EXPECT_TRUE(os::processes_below(root_.path).empty());
    EXPECT_TRUE(os::destroy_cgroup(root_.version, root_.path, seconds{1}).ok());
    std::filesystem::remove_all(directory_);
  }

  json call(kube::Method method, const std::string& path, const json& body = nullptr) {
    const auto response = transport_.send(
        {.method = method, .path = path, .body = body.is_null() ? std::string{} : body.dump()});
    return response.ok() ? json::parse(response->body, nullptr, false) : json{};
  }
  json get(const std::string& path) { return call(kube::Method::kGet, path); }
  json pod(const std::string& name) { return get("/api/v1/namespaces/default/pods/" + name); }
  std::string phase(const std::string& name) {
    return pod(name).value(json::json_pointer{"/status/phase"}, std::string{});
  }
  bool gone(const std::string& name) { return pod(name).value("code", 0) == 404; }

  static json container(const std::string& script) {
    return {{"name", "main"}, {"image", "busybox"}, {"command", {"sh", "-c", script}}};
  }
  // On n1 and run once, unless the spec says otherwise.
  void create(const std::string& name, const json& spec) {
    json object{{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}, {"namespace", "default"}}},
                {"spec", spec}};
    object["spec"]["nodeName"] = spec.value("nodeName", "n1");
    object["spec"]["restartPolicy"] = spec.value("restartPolicy", "Never");
    const json made = call(kube::Method::kPost, "/api/v1/namespaces/default/pods", object);
    ASSERT_EQ(made.value("kind", ""), "Pod") << made.dump();
  }
  void run(const std::string& name, const std::string& script) {
    create(name, {{"containers", {container(script)}}});
  }
  // As kubectl deletes: the object stays until the kubelet has ended the processes.
  void remove(const std::string& name, int grace) {
    call(kube::Method::kDelete, "/api/v1/namespaces/default/pods/" + name,
         {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", grace}});
  }
  bool becomes(const std::string& name, const std::string& wanted) {
    return eventually([&] { return phase(name) == wanted; });
  }
  json state(const std::string& name) {
    return pod(name)["status"]["containerStatuses"][0]["state"];
  }
  std::string log(const std::string& name) {
    return kubelet_->read_log("default", name, "").value();
  }
  // Pods of these tests request nothing, so they are BestEffort.
  std::string cgroup_of(const std::string& name) {
    return kubelet_->node_cgroup("n1") + "/kubepods/besteffort/pod" +
           pod(name)["metadata"]["uid"].get<std::string>();
  }
  // As the agent does, without one.
  void freeze(const std::string& cgroup, bool frozen) {
    if (GetParam() == os::CgroupVersion::kV1) {
      std::ofstream{cgroup + "/freezer.state"} << (frozen ? "FROZEN" : "THAWED");
    } else {
      std::ofstream{cgroup + "/cgroup.freeze"} << (frozen ? "1" : "0");
    }
  }

  kube::SystemClock clock_;
  ApiServer server_{clock_};
  InProcessTransport transport_{server_, "kubelet"};
  os::CgroupRoot root_;
  std::string directory_;
  std::unique_ptr<Kubelet> kubelet_;
  std::jthread feed_;
  std::jthread loop_;
};

// The operator gives no job to a node that is not Ready.
TEST_P(KubeletTest, RegistersItsNodesReady) {
  const json node = get("/api/v1/nodes/n2");
  EXPECT_EQ(node["status"]["allocatable"]["cpu"], "1");
  EXPECT_EQ(node["status"]["conditions"][0]["type"], "Ready");
  EXPECT_EQ(node["status"]["conditions"][0]["status"], "True");
}

// The whole life of a pod: variables, output, status, and no cgroup left. The log outlives the
// process.
TEST_P(KubeletTest, RunsAPodToItsEndAndKeepsItsLog) {
  run("a", "echo hello from $WHERE");
  ASSERT_TRUE(becomes("a", "Succeeded")) << pod("a").dump(1);
  EXPECT_EQ(log("a"), "hello from n1/a\n");
  const json status = pod("a")["status"];
  EXPECT_EQ(status["qosClass"], "BestEffort");
  EXPECT_EQ(state("a")["terminated"]["exitCode"], 0);
  EXPECT_EQ(state("a")["terminated"]["reason"], "Completed");
  EXPECT_TRUE(eventually([&] { return !os::cgroup_exists(cgroup_of("a")); }));
}

// JobReady is read from these: containers that are ready, with the instant of their start.
TEST_P(KubeletTest, ReportsAPodThatRuns) {
  run("a", "sleep 1000");
  ASSERT_TRUE(becomes("a", "Running"));
  const json status = pod("a")["status"];
  EXPECT_TRUE(status["podIP"].get<std::string>().starts_with("127."));
  EXPECT_TRUE(status["containerStatuses"][0]["ready"].get<bool>());
  EXPECT_TRUE(state("a")["running"].contains("startedAt"));
  EXPECT_FALSE(os::processes_below(cgroup_of("a")).empty());
}

// A program that fails and one that does not exist must look different to the user: an exit code,
// and a sentence that names the program.
TEST_P(KubeletTest, FailsAPodWhoseCommandFailsOrIsNone) {
  run("a", "exit 7");
  create("b", {{"containers", {{{"name", "main"}, {"image", "x"}, {"command", {"no-such"}}}}}});
  ASSERT_TRUE(becomes("a", "Failed"));
  ASSERT_TRUE(becomes("b", "Failed"));
  EXPECT_EQ(state("a")["terminated"]["exitCode"], 7);
  EXPECT_EQ(state("b")["terminated"]["reason"], "StartError");
  EXPECT_THAT(state("b")["terminated"]["message"].get<std::string>(),
              HasSubstr("\"no-such\": executable file not found in $PATH"));
}

// A pod that cannot start is not failed: the operator must see it wait, and say why.
TEST_P(KubeletTest, LeavesAPodPendingWhoseImageOrConfigIsMissing) {
  create("a",
         {{"containers", {{{"name", "main"}, {"image", "invalid:1"}, {"command", {"true"}}}}}});
  create("b", {{"containers",
                {{{"name", "main"},
                  {"image", "x"},
                  {"command", {"true"}},
                  {"env",
                   {{{"name", "V"},
                     {"valueFrom", {{"configMapKeyRef", {{"name", "none"}, {"key", "k"}}}}}}}}}}}});
  EXPECT_TRUE(eventually([&] { return state("a")["waiting"]["reason"] == "ErrImagePull"; }));
  EXPECT_TRUE(
      eventually([&] { return state("b")["waiting"]["reason"] == "CreateContainerConfigError"; }));
  EXPECT_EQ(phase("a"), "Pending");
}

// Both write into one file; in the wrong order the second would be overwritten.
TEST_P(KubeletTest, RunsInitContainersFirst) {
  json before = container("echo first >" + directory_ + "/order");
  before["name"] = "before";
  create("a", {{"initContainers", {before}},
               {"containers", {container("echo second >>" + directory_ + "/order")}}});
  ASSERT_TRUE(becomes("a", "Succeeded")) << pod("a").dump(1);
  std::ifstream in{directory_ + "/order"};
  std::string first, second;
  in >> first >> second;
  EXPECT_EQ(first + second, "firstsecond");
}

// Programs save their work on SIGTERM, so the signal must arrive, and the log must have what came
// after it.
TEST_P(KubeletTest, LetsADeletedPodHandleSigterm) {
  run("a", "trap 'echo term; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(becomes("a", "Running"));
  // Only now is the trap set.
  ASSERT_TRUE(eventually([&] { return log("a") == "ready\n"; }));
  remove("a", 30);
  ASSERT_TRUE(eventually([&] { return gone("a"); }));
  EXPECT_EQ(log("a"), "ready\nterm\n");
}

// The grace time is 1 s, so half a second after the deletion the pod is still there.
TEST_P(KubeletTest, KillsAPodThatIgnoresSigtermAfterItsGracePeriod) {
  run("a", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(eventually([&] { return phase("a") == "Running" && log("a") == "ready\n"; }));
  const std::string cgroup = cgroup_of("a");
  remove("a", 1);
  EXPECT_FALSE(eventually([&] { return gone("a"); }, milliseconds{500}));
  EXPECT_TRUE(eventually([&] { return gone("a"); }));
  EXPECT_TRUE(eventually([&] { return !os::cgroup_exists(cgroup); }));
}

// A frozen process handles no SIGTERM. SIGKILL ends it, on v1 only after a thaw (freezer.md).
TEST_P(KubeletTest, EndsAFrozenPodAfterItsGracePeriod) {
  run("a", "trap '' TERM; while :; do sleep 0.01; done");
  ASSERT_TRUE(becomes("a", "Running"));
  freeze(cgroup_of("a"), true);
  remove("a", 1);
  EXPECT_TRUE(eventually([&] { return gone("a"); }));
}

// With a grace time of 0 the object is gone at once, and kubelet must still end the processes.
TEST_P(KubeletTest, EndsWhatAForcedDeletionLeftBehind) {
  run("a", "trap '' TERM; while :; do sleep 0.01; done");
  ASSERT_TRUE(becomes("a", "Running"));
  const std::string cgroup = cgroup_of("a");
  remove("a", 0);
  EXPECT_TRUE(gone("a"));
  EXPECT_TRUE(eventually([&] { return !os::cgroup_exists(cgroup); }));
}

// n2 has 1000 millicores: 600 and 500 are too many. The message is that of the real kubelet.
TEST_P(KubeletTest, RefusesWhatDoesNotFitOnTheNode) {
  const auto with_cpu = [](const char* cpu) {
    json main = container("sleep 1000");
    main["resources"]["requests"]["cpu"] = cpu;
    return json{{"nodeName", "n2"}, {"containers", {main}}};
  };
  create("a", with_cpu("600m"));
  ASSERT_TRUE(becomes("a", "Running"));
  create("b", with_cpu("500m"));
  ASSERT_TRUE(becomes("b", "Failed"));
  EXPECT_EQ(pod("b")["status"]["reason"], "OutOfcpu");
  EXPECT_EQ(pod("b")["status"]["message"],
            "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000");
}

// As kube-scheduler does, it binds a pod that has only one node to choose from.
TEST_P(KubeletTest, BindsPodsThatAreTiedToANodeAndCountsTheirGpus) {
  EXPECT_EQ(get("/api/v1/nodes/n2")["status"]["allocatable"]["nvidia.com/gpu"], "2");
  const auto tied = [&](const std::string& name, const char* gpus) {
    json main = container("sleep 1000");
    main["resources"]["limits"]["nvidia.com/gpu"] = gpus;
    const json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n2"}}};
    const json term{{"matchFields", json::array({field})}};
    const json required{{"requiredDuringSchedulingIgnoredDuringExecution",
                         {{"nodeSelectorTerms", json::array({term})}}}};
    const json made = call(kube::Method::kPost, "/api/v1/namespaces/default/pods",
                           {{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata", {{"name", name}, {"namespace", "default"}}},
                            {"spec",
                             {{"restartPolicy", "Never"},
                              {"affinity", {{"nodeAffinity", required}}},
                              {"containers", json::array({main})}}}});
    ASSERT_EQ(made.value("kind", ""), "Pod") << made.dump();
  };
  tied("a", "2");
  ASSERT_TRUE(becomes("a", "Running"));
  EXPECT_EQ(pod("a")["spec"]["nodeName"], "n2");
  tied("b", "1");
  ASSERT_TRUE(becomes("b", "Failed"));
  EXPECT_EQ(pod("b")["status"]["reason"], "OutOfnvidia.com/gpu");
}

// A node without power reports nothing, so its pods look as if they ran until it is back.
TEST_P(KubeletTest, FailsThePodsOfANodeThatLostPowerWhenItIsBack) {
  run("a", "sleep 1000");
  ASSERT_TRUE(becomes("a", "Running"));
  kubelet_->fail_node("n1", NodeFault::kPoweredOff);
  ASSERT_TRUE(eventually([&] { return os::processes_below(kubelet_->node_cgroup("n1")).empty(); }));
  EXPECT_EQ(get("/api/v1/nodes/n1")["status"]["conditions"][0]["status"], "Unknown");
  EXPECT_EQ(phase("a"), "Running");  // nothing else was reported
  kubelet_->restore_node("n1");
  EXPECT_TRUE(becomes("a", "Failed"));
  EXPECT_EQ(get("/api/v1/nodes/n1")["status"]["conditions"][0]["status"], "True");
}

// A node that is cut off runs on: its pod is not ended and a new one not started until it hears
// again; then it carries out both.
TEST_P(KubeletTest, GoesOnAfterANodeWasCutOff) {
  run("a", "sleep 1000");
  ASSERT_TRUE(becomes("a", "Running"));
  kubelet_->fail_node("n1", NodeFault::kCutOff);
  ASSERT_TRUE(eventually(
      [&] { return get("/api/v1/nodes/n1")["status"]["conditions"][0]["status"] == "Unknown"; }));
  remove("a", 1);
  run("b", "sleep 1000");
  EXPECT_TRUE(throughout([&] { return phase("b") == "Pending" && !gone("a"); }, milliseconds{300}));
  kubelet_->restore_node("n1");
  EXPECT_TRUE(becomes("b", "Running"));
  EXPECT_TRUE(eventually([&] { return gone("a"); }));
}

// The watch ends and its history is compacted, so the kubelet must list again, and must not take
// its pods for deleted meanwhile.
TEST_P(KubeletTest, GoesOnAfterADroppedWatch) {
  run("a", "sleep 1000");
  ASSERT_TRUE(becomes("a", "Running"));
  server_.drop_watches("pods");
  server_.compact();
  run("b", "true");
  remove("a", 1);
  EXPECT_TRUE(becomes("b", "Succeeded"));
  EXPECT_TRUE(eventually([&] { return gone("a"); }));
}

// The client tries once, so three failures are three steps of the kubelet.
TEST_P(KubeletTest, WritesAStatusAgainThatTheServerRefused) {
  for (int i = 0; i < 3; ++i) server_.fail_next("patch", "pods", 503);
  run("a", "true");
  EXPECT_TRUE(becomes("a", "Succeeded"));
}

INSTANTIATE_TEST_SUITE_P(Versions, KubeletTest,
                         testing::Values(os::CgroupVersion::kV1, os::CgroupVersion::kV2),
                         [](const auto& version) { return std::string{to_string(version.param)}; });

}  // namespace
}  // namespace devcluster
