// Starts that a real cluster refuses: by the image, by the API server's admission, by kubelet. A
// gang runs as a whole or not at all, the job says why in the words of who refused, and nothing is
// left behind (architecture.md 5).
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/harness.h"
#include "kube/api/quantity.h"

namespace kubernetes {
namespace {

// Each test makes one reason for which pods cannot start, and looks for two things: the gang does
// not run in part, and the job's message says what a user must change.
class Launch : public Cluster {
 protected:
  std::string message_of(const std::string& name) { return job(name).status.message; }
  // The API server refuses the pods: the job waits, and says so in the server's words.
  void expect_refused_by_the_server(const std::string& name, const std::string& sentence) {
    ASSERT_NO_FATAL_FAILURE(wait_until(name + " says \"" + sentence + "\"", [&] {
      return state(name) == "Pending" && message_of(name).find(sentence) != std::string::npos;
    })) << status_text(name);
    // Pods that were made before the refusal are taken back.
    ASSERT_NO_FATAL_FAILURE(wait_until("no pod is left", [&] { return pods(name).empty(); }));
    EXPECT_EQ(job(name).status.restarts.value_or(0), 0);
    // A refusal that may be over by itself does not need a user to release the job.
    EXPECT_FALSE(job(name).status.held) << status_text(name);
  }
  // Returns a change of the template of job_object().
  static json template_patch(const json& container, const json& pod_spec = json::object()) {
    json spec = pod_spec;
    if (!container.is_null()) spec["containers"] = json::array({container});
    return {{"spec", {{"template", {{"spec", spec}}}}}};
  }
};

// No retry can help, so the job is held at once, with kubelet's word for it.
TEST_F(Launch, AnImpossibleImageNameHoldsTheJob) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "typo", .image = "Registry.e2e/UPPER:1"}));
  ASSERT_NO_FATAL_FAILURE(wait_reason("typo", "LaunchFailedRequeuedHeld"));
  EXPECT_EQ(state("typo"), "Pending");
  EXPECT_NE(message_of("typo").find("InvalidImageName"), std::string::npos) << status_text("typo");
  ASSERT_NO_FATAL_FAILURE(wait_until("no pod is left", [&] { return pods("typo").empty(); }));
}

// Two nodes have the image under this name, the third has not: two pods start, the gang does not.
class LaunchOfAPartialGang : public Launch {
 protected:
  static constexpr const char* kPartialImage = "registry.e2e/kubegang/probe:some-nodes";
  void submit_partial(const json& spec_patch) {
    for (const int n : {1, 2}) {
      const Output tag = on_node(
          n, std::string{"ctr -n k8s.io images tag --force "} + kProbeImage + " " + kPartialImage);
      ASSERT_EQ(tag.exit_code, 0) << tag.text;
    }
    submit({.name = "partial", .image = kPartialImage, .patch = {{"spec", spec_patch}}});
  }
  void expect_held(const std::string& sentence) {
    ASSERT_NO_FATAL_FAILURE(wait_until(
        "the job is held",
        [&] { return job("partial").status.reason == "LaunchFailedRequeuedHeld"; }, seconds{150}));
    EXPECT_NE(message_of("partial").find(sentence), std::string::npos) << status_text("partial");
    EXPECT_EQ(state("partial"), "Pending");
    ASSERT_NO_FATAL_FAILURE(wait_until("no pod is left", [&] { return pods("partial").empty(); }));
    EXPECT_FALSE(job("partial").status.start_time) << "it was ready";
  }
};

// The user's own limit, shorter than the operator's minute: the pods that run are taken back, too.
TEST_F(LaunchOfAPartialGang, IsGivenUpAfterItsStartTimeout) {
  ASSERT_NO_FATAL_FAILURE(submit_partial({{"lifecycle", {{"startTimeout", "5s"}}}}));
  ASSERT_NO_FATAL_FAILURE(expect_held("within startTimeout: pod "));
  // It froze or delayed no job.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "next"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("next"));
}

// An image that cannot be pulled may be a registry that is away, so the operator gives it a minute.
TEST_F(LaunchOfAPartialGang, IsGivenUpAMinuteAfterItsImageCouldNotBePulled) {
  if (!takes_its_time()) GTEST_SKIP() << "takes a minute: KUBEGANG_LONG=1\n";
  ASSERT_NO_FATAL_FAILURE(submit_partial(json::object()));
  ASSERT_NO_FATAL_FAILURE(expect_held("node " + node(3)));
}

// Two of three pods would fit: none stays, because a part of a gang is useless and would block
// others.
TEST_F(Launch, AQuotaKeepsTheGangPendingInTheServersWords) {
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                 {"kind", "ResourceQuota"},
                                 {"metadata", {{"name", "two-pods"}, {"namespace", ns_}}},
                                 {"spec", {{"hard", {{"pods", "2"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("the quota is counted", [&] {
    const json quota = get("/api/v1/namespaces/" + ns_ + "/resourcequotas/two-pods");
    return quota.is_object() && quota["status"].contains("hard");
  }));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "three"}));
  ASSERT_NO_FATAL_FAILURE(expect_refused_by_the_server("three", "exceeded quota"));
  // A job that fits is not held up by one that waits.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "two", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("two"));
}

// The pods ask for 4 CPUs as limits, the range allows 1.
TEST_F(Launch, ALimitRangeKeepsTheGangPendingInTheServersWords) {
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "v1"},
             {"kind", "LimitRange"},
             {"metadata", {{"name", "small"}, {"namespace", ns_}}},
             {"spec", {{"limits", {{{"type", "Container"}, {"max", {{"cpu", "1"}}}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "big"}));
  ASSERT_NO_FATAL_FAILURE(expect_refused_by_the_server("big", "maximum cpu usage per Container"));
}

// The level of the namespace is raised after the test's own namespace was made with a low one.
TEST_F(Launch, PodSecurityKeepsTheGangPendingInTheServersWords) {
  ASSERT_NO_FATAL_FAILURE(
      patch("/api/v1/namespaces/" + ns_,
            {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}}));
  // Without the hostPath volume, which our own policy refuses already.
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "rooted",
              .patch = template_patch({{"name", "main"}, {"image", kProbeImage}},
                                      {{"volumes", nullptr}})}));
  ASSERT_NO_FATAL_FAILURE(expect_refused_by_the_server("rooted", "violates PodSecurity"));
}

// As in a namespace that was made a moment ago: the account is there before a back-off of minutes.
TEST_F(Launch, AServiceAccountThatComesALittleLaterIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(submit(
      {.name = "early", .patch = template_patch(nullptr, {{"serviceAccountName", "late"}})}));
  ASSERT_NO_FATAL_FAILURE(
      // Only now do its pods fail to be made.
      wait_until("the job is allocated", [&] { return job("early").status.starts.has_value(); }));
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                 {"kind", "ServiceAccount"},
                                 {"metadata", {{"name", "late"}, {"namespace", ns_}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("early"));
  // It was not taken back meanwhile.
  EXPECT_EQ(job("early").status.starts.value_or(0), 1) << status_text("early");
}

// A job's author gets no rights over a node by way of the operator.
TEST_F(Launch, AHostPathIsRefusedWhereTheNamespacesLevelDoesNotAllowIt) {
  ASSERT_NO_FATAL_FAILURE(
      patch("/api/v1/namespaces/" + ns_,
            {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", nullptr}}}}}}));
  // The template has the stamps' hostPath, as all probes do here.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "mounts"}));
  ASSERT_NO_FATAL_FAILURE(expect_refused_by_the_server("mounts", "hostPath"));
}

// kubelet on the first node refuses, by what the operator does not count; the gang starts on the
// others.
class LaunchRefusedByKubelet : public Launch {
 protected:
  // Returns the pods on the first node that are not finished.
  std::vector<json> pods_of_first_node() {
    return list("/api/v1/pods?fieldSelector=spec.nodeName=" + node(1) +
                ",status.phase!=Succeeded,status.phase!=Failed");
  }
  // Returns the sum of their containers' requests, sidecars among them.
  std::int64_t requested(const std::string& resource) {
    const json::json_pointer request{"/resources/requests/" + resource};
    std::int64_t milli = 0;
    const auto add = [&](const json& container) {
      const auto quantity = kube::parse_quantity(container.value(request, "0"));
      EXPECT_TRUE(quantity.ok());
      if (quantity.ok()) milli += quantity->milli();
    };
    for (const json& pod : pods_of_first_node()) {
      for (const json& container : pod["spec"]["containers"]) add(container);
      for (const json& container : pod["spec"].value("initContainers", json::array())) {
        if (container.value("restartPolicy", "") == "Always") add(container);
      }
    }
    return milli;
  }
  // A pod of no job on the first node, which must run before the job is submitted.
  // With its node in the spec, so kube-scheduler is not asked.
  void run_big_pod(const json& pod_spec, const json& container) {
    json main{{"name", "main"}, {"image", kBusyboxImage}, {"command", {"sleep", "1000"}}};
    main.merge_patch(container);
    json spec{{"nodeName", node(1)},
              {"terminationGracePeriodSeconds", 0},
              {"containers", json::array({main})}};
    spec.merge_patch(pod_spec);
    ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                   {"kind", "Pod"},
                                   {"metadata", {{"name", "big"}, {"namespace", ns_}}},
                                   {"spec", spec}}));
    ASSERT_NO_FATAL_FAILURE(wait_until("the big pod runs", [&] {
      return get("/api/v1/namespaces/" + ns_ + "/pods/big")["status"].value("phase", "") ==
             "Running";
    }));
  }
  // The refusal is in the operator's words, in an event of the job.
  void expect_pair_elsewhere(const std::string& sentence) {
    ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
    ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
    const kube::Job pair = job("pair");
    // It runs on the other two nodes, and the refusal does not count as a restart.
    EXPECT_EQ(pair.status.allocation->hostlist, nodes(2, 3)) << status_text("pair");
    EXPECT_EQ(pair.status.restarts.value_or(0), 0) << status_text("pair");
    const std::string refused = "node " + node(1) + " refused the pod";
    ASSERT_NO_FATAL_FAILURE(wait_until("an event with \"" + sentence + "\"", [&] {
      const std::vector<json> events = list("/api/v1/namespaces/" + ns_ + "/events");
      return std::any_of(events.begin(), events.end(), [&](const json& event) {
        const std::string message = event.value("message", "");
        return message.find(refused) != std::string::npos &&
               message.find(sentence) != std::string::npos;
      });
    }));
  }
  // kubelet reads its configuration only at its start.
  void set_max_pods_of_first_node(std::size_t pods_count) {
    is_kubelet_changed_ = pods_count != kPodsDefault;
    const std::string file = state_directory() + "/nodes/" + node(1) + "/kubelet.yaml";
    const Output edited = run_shell("sed -i '/^maxPods:/d' " + file + " && echo 'maxPods: " +
                                    std::to_string(pods_count) + "' >>" + file);
    ASSERT_EQ(edited.exit_code, 0) << edited.text;
    ASSERT_EQ(on_node(1, "sh -c 'kill $(cat /run/kubelet.pid)'").exit_code, 0);
    ASSERT_NO_FATAL_FAILURE(wait_until("kubelet says its new limit", [&] {
      return get(node_path(1))["status"]["allocatable"].value("pods", "") ==
             std::to_string(pods_count);
    }));
    wait_nodes_ready();
  }
  // Returns a pod that kubelet finds in a folder (node-init) and the API server does not know: it
  // has no such namespace.
  static std::string static_pod_file() {
    return state_directory() + "/nodes/" + node(1) + "/kubelet/static/hidden.json";
  }
  // The argument of sleep is one that no other process has, by which it is found below.
  static void make_static_pod() {
    const json pod{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", "hidden"}, {"namespace", "nowhere"}}},
        {"spec",
         {{"terminationGracePeriodSeconds", 0},
          {"containers",
           {{{"name", "main"}, {"image", kBusyboxImage}, {"command", {"sleep", "271828"}}}}}}}};
    std::ofstream{static_pod_file()} << pod.dump();
  }
  static bool static_pod_runs() { return run_shell("pgrep -f '[s]leep 271828'").exit_code == 0; }
  void TearDown() override {
    if (!ns_.empty()) std::filesystem::remove(static_pod_file());
    if (is_kubelet_changed_) set_max_pods_of_first_node(kPodsDefault);
    Launch::TearDown();
  }

  static constexpr std::size_t kPodsDefault = 110;  // kubelet's
  bool is_kubelet_changed_ = false;
};

// A pod that was bound without the operator's knowledge; kubelet counts it, the operator tries and
// learns.
TEST_F(LaunchRefusedByKubelet, OutOfCpuAndTheGangStartsElsewhere) {
  // It leaves less than the job's 4m of the node's 4 CPUs.
  const std::string cpu = std::to_string(4000 - requested("cpu")) + "m";
  ASSERT_NO_FATAL_FAILURE(
      run_big_pod(json::object(), {{"resources", {{"requests", {{"cpu", cpu}}}}}}));
  ASSERT_NO_FATAL_FAILURE(expect_pair_elsewhere("enough resource: cpu"));
  remove("/api/v1/namespaces/" + ns_ + "/pods/big");
}

// Memory it counts, also that of a pod as a whole, which no container of it names.
TEST_F(LaunchRefusedByKubelet, ANodeWithoutMemoryIsNotEvenTried) {
  // It leaves less than the job's 4 x 64 MiB.
  const auto allocatable =
      kube::parse_quantity(get(node_path(1))["status"]["allocatable"].value("memory", ""));
  ASSERT_TRUE(allocatable.ok());
  const std::int64_t left = (allocatable->milli() - requested("memory")) / 1000;
  const json memory{{"memory", std::to_string(left - (100 << 20))}};
  ASSERT_NO_FATAL_FAILURE(run_big_pod({{"resources", {{"requests", memory}}}}, json::object()));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  const kube::Job pair = job("pair");
  EXPECT_EQ(pair.status.allocation->hostlist, nodes(2, 3)) << status_text("pair");
  EXPECT_EQ(pair.status.starts.value_or(0), 1) << status_text("pair");
  remove("/api/v1/namespaces/" + ns_ + "/pods/big");
}

// The operator does not leave to a refusal what it can count itself.
TEST_F(LaunchRefusedByKubelet, ANodeWithoutRoomForAPodIsNotEvenTried) {
  const std::size_t before = pods_of_first_node().size();
  ASSERT_NO_FATAL_FAILURE(set_max_pods_of_first_node(before));
  // kubelet would say OutOfpods: it is not even asked.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  EXPECT_EQ(job("pair").status.allocation->hostlist, nodes(2, 3)) << status_text("pair");
  EXPECT_EQ(job("pair").status.starts.value_or(0), 1) << status_text("pair");
  ASSERT_NO_FATAL_FAILURE(submit({.name = "all"}));
  // An event says once a minute why it waits.
  wait_until(
      "the job of all nodes waits for room for its pod",
      [&] {
        return job("all").status.message.find("1 have no room for another pod") !=
               std::string::npos;
      },
      seconds{90});
  set_max_pods_of_first_node(kPodsDefault);
  wait_ready("all");
}

// By a static pod, which no API server lists until kubelet has made its mirror, here never.
TEST_F(LaunchRefusedByKubelet, OutOfPodsAndTheGangStartsElsewhere) {
  ASSERT_NO_FATAL_FAILURE(make_static_pod());
  // Room for one more, by what the API server knows.
  ASSERT_NO_FATAL_FAILURE(set_max_pods_of_first_node(pods_of_first_node().size() + 1));
  ASSERT_NO_FATAL_FAILURE(wait_until("the static pod runs", [] { return static_pod_runs(); }));
  ASSERT_NO_FATAL_FAILURE(expect_pair_elsewhere("enough resource: pods"));
}

// Pods that a webhook changes on their way, as service meshes do.
class LaunchChangedByAWebhook : public Launch {
 protected:
  static constexpr const char* kPolicies =
      "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies";
  static constexpr const char* kBindings =
      "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings";

  // Adds a value, in CEL, at a place in the pods, as a JSON patch says it. (An ApplyConfiguration
  // may not change a container's arguments, which are an atomic list.)
  // A policy stands for a webhook: the effect on pods is the same, and no server is needed.
  void change_pods_of(const std::string& job_name, const std::string& place,
                      const std::string& value) {
    const json metadata{{"name", ns_}};
    const std::string change =
        "[JSONPatch{op: 'add', path: '" + place + "', value: " + value + "}]";
    const json rule{{"apiGroups", {""}},
                    {"apiVersions", {"v1"}},
                    {"operations", {"CREATE"}},
                    {"resources", {"pods"}}};
    const auto policy =
        call(kube::Method::kPost, kPolicies,
             {{"apiVersion", "admissionregistration.k8s.io/v1beta1"},
              {"kind", "MutatingAdmissionPolicy"},
              {"metadata", metadata},
              {"spec",
               // For pods of this test's job alone.
               {{"matchConstraints",
                 {{"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", ns_}}}}},
                  {"objectSelector", {{"matchLabels", {{"kubegang.io/job", job_name}}}}},
                  {"resourceRules", {rule}}}},
                {"failurePolicy", "Fail"},
                {"reinvocationPolicy", "Never"},
                {"mutations",
                 {{{"patchType", "JSONPatch"}, {"jsonPatch", {{"expression", change}}}}}}}}});
    ASSERT_TRUE(policy.ok()) << policy.error().message;
    const auto binding = call(kube::Method::kPost, kBindings,
                              {{"apiVersion", "admissionregistration.k8s.io/v1beta1"},
                               {"kind", "MutatingAdmissionPolicyBinding"},
                               {"metadata", metadata},
                               {"spec", {{"policyName", ns_}}}});
    ASSERT_TRUE(binding.ok()) << binding.error().message;
    // In force a moment later: the pod is only tried.
    json tried = job_object({.name = "template"})["spec"]["template"];
    tried["apiVersion"] = "v1";
    tried["kind"] = "Pod";
    tried["metadata"] = {{"name", "tried"}, {"labels", {{"kubegang.io/job", job_name}}}};
    tried["spec"]["nodeName"] = node(1);
    ASSERT_NO_FATAL_FAILURE(wait_until("pods are changed", [&] {
      const auto pod =
          call(kube::Method::kPost, "/api/v1/namespaces/" + ns_ + "/pods?dryRun=All", tried);
      return pod.ok() && ((*pod)["spec"]["containers"].size() > 1 ||
                          (*pod)["spec"]["containers"][0].contains("livenessProbe"));
    }));
  }
  void TearDown() override {
    if (!ns_.empty()) {
      (void)call(kube::Method::kDelete, std::string{kBindings} + "/" + ns_);
      (void)call(kube::Method::kDelete, std::string{kPolicies} + "/" + ns_);
    }
    Launch::TearDown();
  }
};

// The program answers the probe while it runs; were it frozen for a turn of the others, kubelet
// would restart it.
TEST_F(LaunchChangedByAWebhook, AGangWithALivenessProbeIsNeverFrozenAndSaysSo) {
  ASSERT_NO_FATAL_FAILURE(change_pods_of(
      "probed", "/spec/containers/0/livenessProbe",
      "Object.spec.containers.livenessProbe{periodSeconds: 1, failureThreshold: 2, httpGet: "
      "Object.spec.containers.livenessProbe.httpGet{path: '/', port: 8000}}"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "plain"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("plain"));
  ASSERT_NO_FATAL_FAILURE(submit(
      {.name = "probed",
       .command = {"sh", "-c",
                   "mkdir /www; echo yes >/www/index.html; exec httpd -f -p 8000 -h /www"}}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("probed"));
  const auto probed = pods("probed");
  ASSERT_EQ(probed.size(), 3U);
  // The webhook has done its work, or the test would show nothing.
  ASSERT_TRUE(probed[0]["spec"]["containers"][0].contains("livenessProbe"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the other gang takes turns with it",
                                     [&] { return is_frozen(pod_on("plain", node(1))); }));
  // Sixteen slices, eight of them the other's. With a slice of half a second no probe would fail
  // twice; that the pods are never frozen is the point.
  EXPECT_TRUE(devcluster::throughout(
      [&] {
        return std::none_of(probed.begin(), probed.end(),
                            [&](const json& pod) { return is_frozen(pod); });
      },
      seconds{8}));
  // kubelet restarted no container of either gang.
  expect_undisturbed("probed");
  expect_undisturbed("plain");
  const kube::Job shown = job("probed");
  const kube::Condition* said = kube::find_condition(shown.status.conditions, "NeverFrozen");
  ASSERT_NE(said, nullptr) << status_text("probed");
  EXPECT_NE(said->message.find("container main has a livenessProbe"), std::string::npos)
      << said->message;
}

// It is frozen with the pod: in another gang's turn nothing of it runs either. It stamps as the job
// "mesh" would.
TEST_F(LaunchChangedByAWebhook, AnInjectedContainerTakesTurnsWithItsGang) {
  ASSERT_NO_FATAL_FAILURE(change_pods_of(
      "meshed", "/spec/containers/-",
      std::string{"Object.spec.containers{name: 'mesh', image: '"} + kProbeImage +
          "', args: ['--work-micros=20'], env: [Object.spec.containers.env{name: "
          "'KUBEGANG_STAMP_FILE', value: '/stamps/' + object.spec.nodeName + '/' + "
          "object.metadata.name.replace('meshed-', 'mesh-') + '.stamps'}], volumeMounts: "
          "[Object.spec.containers.volumeMounts{name: 'stamps', mountPath: '/stamps'}]}"));
  for (const char* name : {"plain", "meshed"}) ASSERT_NO_FATAL_FAILURE(submit({.name = name}));
  for (const char* name : {"plain", "meshed"}) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  for (const json& pod : pods("meshed")) ASSERT_EQ(pod["spec"]["containers"].size(), 2U);
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"plain", "meshed"}));
  const Instant from = now();
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from, {"plain", "meshed"}));
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from, {"plain", "mesh"}));
  for (const char* name : {"plain", "meshed"}) expect_undisturbed(name);
}

// In an ending namespace nothing can be created. The operator must not hold the end up by trying,
// and no finalizer of kubegang may keep it.
TEST_F(Launch, ANamespaceThatEndsTakesItsJobsAlong) {
  const std::string other = ns_ + "-ends";
  ASSERT_NO_FATAL_FAILURE(
      make_namespace(other, {{"pod-security.kubernetes.io/enforce", "privileged"}}));
  json object = job_object({.name = "short-lived"});
  object["metadata"]["namespace"] = other;
  ASSERT_NO_FATAL_FAILURE(apply(object));
  const std::string path = "/api/v1/namespaces/" + other;
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods run", [&] {
    const std::vector<json> its_pods = list(path + "/pods");
    return its_pods.size() == 3 &&
           std::all_of(its_pods.begin(), its_pods.end(), [](const json& pod) {
             return pod["status"].value("phase", "") == "Running";
           });
  }));
  ASSERT_NO_FATAL_FAILURE(remove(path));
  ASSERT_NO_FATAL_FAILURE(wait_until("the namespace is gone", [&] { return get(path).is_null(); }));
}

// The node's taints are honoured although kube-scheduler is not asked.
TEST_F(Launch, ATaintedNodeIsUsedOnlyByJobsThatTolerateIt) {
  ASSERT_NO_FATAL_FAILURE(patch(
      node_path(1),
      {{"spec",
        {{"taints", {{{"key", "e2e"}, {"value", "dedicated"}, {"effect", "NoSchedule"}}}}}}}));
  // The operator hears of nodes and of jobs by two watches, and of neither first.
  const Instant heard = now() + seconds{1};
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the operator has heard of the taint", [&] { return now() >= heard; }));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  EXPECT_EQ(job("pair").status.allocation->hostlist, nodes(2, 3));
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "tolerant",
              .patch = template_patch(
                  nullptr, {{"tolerations", {{{"key", "e2e"}, {"operator", "Exists"}}}}})}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("tolerant"));
  EXPECT_EQ(job("tolerant").status.allocation->hostlist, nodes(1, 3));
  patch(node_path(1), {{"spec", {{"taints", nullptr}}}});
}

// Cordoned is Slurm's DRAIN: what runs there goes on, and no job starts.
TEST_F(Launch, ACordonedNodeGetsNoNewGangAndKeepsItsOwn) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "before"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("before"));
  ASSERT_EQ(run_shell(kubectl("cordon " + node(1))).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(submit({.name = "after", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("after"));
  EXPECT_EQ(job("after").status.allocation->hostlist, nodes(2, 3));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "waits"}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang waits", [&] { return !job("waits").status.reason.empty(); }));
  // The gang of all nodes needs the cordoned one, too.
  EXPECT_EQ(state("waits"), "Pending");
  expect_undisturbed("before");
  ASSERT_EQ(run_shell(kubectl("uncordon " + node(1))).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_ready("waits"));
}

}  // namespace
}  // namespace kubernetes
