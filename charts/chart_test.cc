// What the chart renders, without a cluster. Needs Helm: skipped, aloud, where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "charts/helm.h"
#include "e2e/devcluster/api_server/api_server.h"
#include "e2e/devcluster/api_server/in_process_transport.h"
#include "e2e/devcluster/api_server/yaml_json.h"
#include "kube/api/job.h"
#include "kube/api/partition.h"
#include "kube/api/scheduler_config.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"
#include "node-agent/metrics.h"
#include "node-agent/options.h"
#include "node-agent/pod_cgroups.h"
#include "operator/metrics.h"
#include "operator/options.h"

namespace charts {
namespace {

using nlohmann::json;
using Objects = std::vector<json>;
using Strings = std::set<std::string>;

constexpr char kChart[] = KUBEGANG_SOURCE_DIR "/charts/kubegang";
constexpr char kNamespace[] = "kubegang-system";
constexpr char kDigest[] =
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
// Every value that a template asks for or walks through, as it is not by default.
const std::vector<std::string> kSwitches = {
    "crds.enabled=false",
    "operator.replicas=3",
    "operator.tolerations[0].operator=Exists",
    "operator.affinity.nodeAffinity.any=thing",
    "operator.extraArgs[0]=--log-level=debug",
    std::string{"operator.digest="} + kDigest,
    std::string{"agent.digest="} + kDigest,
    "agent.seLinuxOptions.type=spc_t",
    "agent.realtime=false",
    "agent.nodeSelector.pool=batch",
    "agent.maxUnavailable=2",
    "agent.cgroupDriver=cgroupfs",
    "agent.kubeletCgroupRoot=/kubelet",
    "agent.extraArgs[0]=--log-level=debug",
    "image.registry=registry.example/",
    "image.pullSecrets[0].name=secret",
    "schedulerConfig.create=false",
    "schedulerConfig.spec.timeSlice=5s",
    "rbac.bindUseToAuthenticated=false",
    "rbac.aggregate=false",
    "admissionPolicies.enabled=false",
    "admissionPolicies.jobNamespaceLabels.tier=batch",
    "networkPolicy.enabled=true",
    "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus",
    "resourceQuota.enabled=true",
    "metrics.address=[::]",
    "metrics.serviceMonitor.enabled=true",
    "metrics.serviceMonitor.labels.release=prometheus",
    "metrics.prometheusRule.enabled=true",
    "metrics.prometheusRule.labels.release=prometheus",
    "metrics.dashboard.enabled=true",
    "metrics.dashboard.namespace=grafana",
    "test.partition=batch",
};

std::string set(const std::vector<std::string>& values) {
  std::string options;
  for (const std::string& value : values) options += " --set '" + value + "'";
  return options;
}

std::string read(const std::string& path) {
  std::ifstream file{path};
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

json read_yaml(const std::string& path) {
  const auto documents = devcluster::read_yaml_file(path);
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  return documents.ok() && !documents->empty() ? json::parse(documents->front()) : json{};
}

class Chart : public testing::Test {
 protected:
  void SetUp() override {
    if (helm_program().empty()) {
      GTEST_SKIP() << "there is no Helm: e2e/kubernetes/build-tools helm builds one (needs Go)";
    }
  }
};

TEST_F(Chart, LintIsClean) {
  const HelmRun run = run_helm("lint --strict --kube-version 1.34.4 " + std::string{kChart});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  for (const char* word : {"[WARNING]", "[ERROR]"}) {
    EXPECT_EQ(run.output.find(word), std::string::npos) << run.output;
  }
}

// -- Every combination -------------------------------------------------------------------------

// What must hold of any rendering, whatever the values.
void check_whole(const Objects& objects, const std::string& options) {
  SCOPED_TRACE(options);
  std::set<std::string> ids;
  std::set<std::string> policies;
  for (const json& object : objects) {
    const std::string id = id_of(object);
    SCOPED_TRACE(id);
    EXPECT_TRUE(ids.insert(id + "." + object.value("/metadata/namespace"_json_pointer, "")).second)
        << "rendered twice";
    EXPECT_NE(object.value("apiVersion", ""), "");
    EXPECT_EQ(object.value("/metadata/labels/app.kubernetes.io~1name"_json_pointer, ""),
              "kubegang");
    if (object["kind"] == "ValidatingAdmissionPolicy") policies.insert(object["metadata"]["name"]);
  }
  for (const json& object : objects) {
    SCOPED_TRACE(id_of(object));
    if (object.contains("roleRef")) {
      const std::string role = object["roleRef"]["kind"].get<std::string>() + "/" +
                               object["roleRef"]["name"].get<std::string>();
      EXPECT_TRUE(std::any_of(objects.begin(), objects.end(),
                              [&](const json& other) { return id_of(other) == role; }))
          << "binds " << role << ", which does not exist";
    }
    if (object["kind"] == "ValidatingAdmissionPolicyBinding") {
      EXPECT_EQ(policies.erase(object["spec"]["policyName"]), 1U) << "binds no policy";
    }
    const auto selector = "/spec/selector/matchLabels"_json_pointer;
    const auto labels = "/spec/template/metadata/labels"_json_pointer;
    if (object.contains(selector) && object.contains(labels)) {
      for (const auto& [key, value] : object[selector].items()) {
        EXPECT_EQ(object[labels].value(key, ""), value) << "does not select its own pods";
      }
    }
  }
  EXPECT_TRUE(policies.empty()) << "not bound: " << *policies.begin();
}

TEST_F(Chart, RendersWithEverySwitchAloneAndWithAllButOne) {
  check_whole(render(), "defaults");
  check_whole(render(set(kSwitches)), "all switches");
  for (std::size_t i = 0; i < kSwitches.size(); ++i) {
    check_whole(render(set({kSwitches[i]})), kSwitches[i]);
    std::vector<std::string> others = kSwitches;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    check_whole(render(set(others)), "all but " + kSwitches[i]);
  }
}

TEST_F(Chart, SchemaRefusesWrongValues) {
  for (const char* wrong : {"operator.replicas=-1",
                            "operator.replicas=two",
                            "operator.replica=2",
                            "agent.realtime=maybe",
                            "agent.maxUnavailable=0",
                            "agent.maxUnavailable=120%",
                            "agent.cgroupRoot=relative",
                            "agent.cgroupDriver=none",
                            "agent.kubeletCgroupRoot=../..",
                            "image.pullPolicy=Sometimes",
                            "image.registry=without-slash",
                            "crds.enabled=perhaps",
                            "metrics.serviceMonitor.interval=often",
                            "metrics.prometheusRule.switchLatenessSeconds=0",
                            "test.nodes=0",
                            "unknown=1",
                            "operator.digest=sha256:12",
                            "agent.digest=latest",
                            "agent.seLinuxOptions.typ=spc_t",
                            "metrics.address=::",
                            "resourceQuota.pods=0",
                            "networkPolicy.apiServerPorts[0]=70000",
                            "admissionPolicies.jobNamespaceLabels.tier=it's"}) {
    const HelmRun run = run_template("--set \"" + std::string{wrong} + "\"");
    EXPECT_NE(run.exit_code, 0) << wrong << " is accepted";
    EXPECT_THAT(run.output, testing::HasSubstr("don't meet the specifications of the schema"))
        << wrong;
  }
}

// -- Parts -------------------------------------------------------------------------------------

TEST_F(Chart, CrdsAreOursAndStay) {
  const Objects objects = render();
  for (const char* name : {"jobs", "nodetimetables", "partitions", "qos", "schedulerconfigs"}) {
    json rendered = find(objects, std::string{"CustomResourceDefinition/"} + name + ".kubegang.io");
    EXPECT_EQ(rendered["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    rendered["metadata"].erase("annotations");
    rendered["metadata"].erase("labels");
    EXPECT_EQ(rendered,
              read_yaml(std::string{KUBEGANG_SOURCE_DIR "/crds/kubegang.io_"} + name + ".yaml"));
  }
}

// The command line of a container, as the program gets it.
std::vector<std::string> arguments_of(const json& workload) {
  std::vector<std::string> arguments;
  for (std::string argument : workload["spec"]["template"]["spec"]["containers"][0]["args"]) {
    for (const auto& [name, value] :
         {std::pair{"$(POD_NAMESPACE)", kNamespace}, std::pair{"$(NODE_NAME)", "n1"}}) {
      const std::size_t at = argument.find(name);
      if (at != std::string::npos) argument.replace(at, std::string{name}.size(), value);
    }
    arguments.push_back(argument);
  }
  return arguments;
}

TEST_F(Chart, OperatorUnderstandsItsCommandLine) {
  const auto parsed =
      control::parse_options(arguments_of(find(render(), "Deployment/kubegang-operator")));
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.lease(), (kube::ObjectKey{kNamespace, "kubegang-operator"}));
  EXPECT_TRUE(parsed.options.leader_elect);
  EXPECT_EQ(parsed.options.metrics_port, 8080);
}

TEST_F(Chart, BothProgramsListenOnIpv6WhereThatIsAskedFor) {
  const Objects objects = render(set({"metrics.address=[::]"}));
  const auto of_operator =
      control::parse_options(arguments_of(find(objects, "Deployment/kubegang-operator")));
  EXPECT_EQ(of_operator.options.metrics_host, "::");
  const auto of_agent =
      agent::parse_options(arguments_of(find(objects, "DaemonSet/kubegang-agent")));
  EXPECT_EQ(of_agent.options.metrics_address, "[::]:8081");
}

TEST_F(Chart, AgentUnderstandsItsCommandLineAndFindsTheOperatorsLease) {
  for (const char* realtime : {"true", "false"}) {
    const auto parsed = agent::parse_options(arguments_of(find(
        render(set({std::string{"agent.realtime="} + realtime})), "DaemonSet/kubegang-agent")));
    ASSERT_FALSE(parsed.exit_code) << parsed.text;
    EXPECT_EQ(parsed.options.lease_key(), (kube::ObjectKey{kNamespace, "kubegang-operator"}));
    EXPECT_EQ(parsed.options.node_name, "n1");
    EXPECT_EQ(parsed.options.fifo, std::string{realtime} == "true");
  }
}

// The pods of both programs and that of `helm test`.
std::map<std::string, json> pod_specs(const Objects& objects) {
  return {{"operator", find(objects, "Deployment/kubegang-operator")["spec"]["template"]["spec"]},
          {"agent", find(objects, "DaemonSet/kubegang-agent")["spec"]["template"]["spec"]},
          {"test", find(objects, "Pod/kubegang-test")["spec"]}};
}

TEST_F(Chart, ADigestNamesTheImageInsteadOfTheTag) {
  const std::string of_operator = std::string{"registry.example:5000/kubegang/operator@"} + kDigest;
  const Objects objects =
      render(set({"image.registry=registry.example:5000/", "image.tag=1.2.3",
                  std::string{"operator.digest="} + kDigest, "image.pullSecrets[0].name=secret"}));
  std::map<std::string, json> pods = pod_specs(objects);
  EXPECT_EQ(pods["operator"]["containers"][0]["image"], of_operator);
  EXPECT_EQ(pods["test"]["containers"][0]["image"], of_operator);
  EXPECT_THAT(pods["test"]["containers"][0]["command"].get<std::vector<std::string>>(),
              testing::Contains("--image=" + of_operator));
  EXPECT_EQ(pods["agent"]["containers"][0]["image"], "registry.example:5000/kubegang/agent:1.2.3");
  for (const auto& [name, pod] : pods) {
    EXPECT_EQ(pod["imagePullSecrets"], json::parse(R"([{"name": "secret"}])")) << name;
  }
}

TEST_F(Chart, PodsStandOnLinuxNodesOnly) {
  for (const auto& [name, pod] : pod_specs(render())) {
    EXPECT_EQ(pod["nodeSelector"], json::parse(R"({"kubernetes.io/os": "linux"})")) << name;
  }
  const auto with_more =
      pod_specs(render(set({"operator.nodeSelector.pool=infra", "agent.nodeSelector.pool=batch"})));
  EXPECT_EQ(with_more.at("operator")["nodeSelector"],
            json::parse(R"({"kubernetes.io/os": "linux", "pool": "infra"})"));
  EXPECT_EQ(with_more.at("agent")["nodeSelector"],
            json::parse(R"({"kubernetes.io/os": "linux", "pool": "batch"})"));
}

TEST_F(Chart, PodsGoAndRunAsTheValuesSay) {
  const Objects objects = render(
      set({"operator.tolerations[0].operator=Exists", "operator.affinity.nodeAffinity.any=thing",
           "operator.extraArgs[0]=--log-level=debug", "agent.extraArgs[0]=--log-level=warn"}));
  std::map<std::string, json> pods = pod_specs(objects);
  for (const char* name : {"operator", "test"}) {
    EXPECT_EQ(pods[name]["tolerations"], json::parse(R"([{"operator": "Exists"}])")) << name;
  }
  EXPECT_EQ(pods["operator"]["affinity"], json::parse(R"({"nodeAffinity": {"any": "thing"}})"));
  EXPECT_EQ(pods["operator"]["containers"][0]["args"].back(), "--log-level=debug");
  EXPECT_EQ(pods["agent"]["containers"][0]["args"].back(), "--log-level=warn");
}

// Another version of the chart alone restarts no agent.
TEST_F(Chart, PodsHaveNoLabelButTheirSelectors) {
  const Objects objects = render();
  for (const char* id : {"Deployment/kubegang-operator", "DaemonSet/kubegang-agent"}) {
    const json workload = find(objects, id);
    EXPECT_EQ(workload["spec"]["template"]["metadata"]["labels"],
              workload["spec"]["selector"]["matchLabels"])
        << id;
  }
}

TEST_F(Chart, TheQuotaAdmitsThePriorityClassesOfOurPods) {
  const Objects objects = render(set({"resourceQuota.enabled=true"}));
  const json scope =
      find(objects,
           "ResourceQuota/kubegang-critical-pods")["spec"]["scopeSelector"]["matchExpressions"][0];
  EXPECT_EQ(scope["scopeName"], "PriorityClass");
  const auto classes = scope["values"].get<Strings>();
  for (const char* program : {"operator", "agent"}) {
    EXPECT_TRUE(classes.contains(pod_specs(objects)[program]["priorityClassName"])) << program;
  }
}

TEST_F(Chart, TheTestMayUsePartitionsWhoeverElseMay) {
  const json binding =
      find(render(set({"rbac.bindUseToAuthenticated=false"})), "ClusterRoleBinding/kubegang-test");
  EXPECT_EQ(binding["roleRef"]["name"], "kubegang-use-all-partitions");
  EXPECT_EQ(binding["subjects"], json::parse(R"([{"kind": "ServiceAccount", "name": "kubegang-test",
                             "namespace": "kubegang-system"}])"));
}

// The policies know these three by their names.
TEST_F(Chart, PodsHaveTheirOwnServiceAccounts) {
  const Objects objects = render();
  for (const auto& [name, pod] : pod_specs(objects)) {
    const std::string account = "kubegang-" + name;
    EXPECT_EQ(pod["serviceAccountName"], account);
    find(objects, "ServiceAccount/" + account);
  }
  const json policy = find(objects, "ValidatingAdmissionPolicy/kubegang-own-tokens");
  const std::string condition = policy["spec"]["matchConditions"][0]["expression"];
  for (const char* name : {"operator", "agent", "test"}) {
    EXPECT_THAT(condition,
                testing::HasSubstr(std::string{"'system:serviceaccount:kubegang-system:kubegang-"} +
                                   name + "'"));
  }
}

TEST_F(Chart, OperatorIsConfined) {
  const json deployment = find(render(), "Deployment/kubegang-operator");
  const json pod = deployment["spec"]["template"]["spec"];
  EXPECT_EQ(pod["securityContext"],
            json::parse(R"({"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
                            "seccompProfile": {"type": "RuntimeDefault"}})"));
  EXPECT_EQ(pod["containers"][0]["securityContext"],
            json::parse(R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]}})"));
  EXPECT_FALSE(pod.contains("volumes"));
}

TEST_F(Chart, AgentIsConfined) {
  for (const bool realtime : {true, false}) {
    const json daemon_set =
        find(render(set({realtime ? "agent.realtime=true" : "agent.realtime=false"})),
             "DaemonSet/kubegang-agent");
    const json pod = daemon_set["spec"]["template"]["spec"];
    for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
      EXPECT_FALSE(pod.contains(field)) << field;
    }
    json want = json::parse(
        R"({"runAsUser": 0, "privileged": false, "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"}})");
    if (realtime) want["capabilities"]["add"] = {"SYS_NICE", "IPC_LOCK"};
    EXPECT_EQ(pod["containers"][0]["securityContext"], want);
    // With `realtime` too: the kernel may refuse SCHED_FIFO (design/freezer.md 4 rule 2).
    EXPECT_EQ(pod["containers"][0]["resources"]["requests"]["cpu"], "500m");
    EXPECT_FALSE(pod["containers"][0]["resources"]["limits"].contains("cpu"));
    EXPECT_EQ(pod["priorityClassName"], "system-node-critical");
    EXPECT_EQ(pod["tolerations"], json::parse(R"([{"operator": "Exists"}])"));
  }
  EXPECT_EQ(
      find(render(),
           "DaemonSet/kubegang-agent")["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"],
      "10%");
}

// The mount is where the agent looks for it.
TEST_F(Chart, AgentGetsTheCgroupsOfPodsOnly) {
  for (const std::string kubelet_root : {"", "/kubelet", "/a-b/c"}) {
    const std::vector<std::string> paths =
        agent::kubepods_paths(kubelet_root);  // systemd's, cgroupfs'
    for (const bool systemd : {true, false}) {
      const json daemon_set = find(
          render(set({"agent.kubeletCgroupRoot=" + kubelet_root, "agent.cgroupRoot=/root/",
                      std::string{"agent.cgroupDriver="} + (systemd ? "systemd" : "cgroupfs")})),
          "DaemonSet/kubegang-agent");
      const std::string kubepods = paths[systemd ? 0 : 1];
      const json pod = daemon_set["spec"]["template"]["spec"];
      const json volumes = json::parse(
          R"([{"name": "run", "hostPath": {"path": "/run/kubegang", "type": "DirectoryOrCreate"}},
              {"name": "kubepods", "hostPath": {"path": "/root/)" +
          kubepods + R"(", "type": "Directory"}}])");
      EXPECT_EQ(pod["volumes"], volumes);
      EXPECT_EQ(pod["containers"][0]["volumeMounts"][1],
                (json{{"name", "kubepods"}, {"mountPath", "/host/cgroup/" + kubepods}}));
      const auto parsed = agent::parse_options(arguments_of(daemon_set));
      EXPECT_EQ(parsed.options.cgroup_root, "/host/cgroup");
      EXPECT_EQ(parsed.options.kubelet_cgroup_root, kubelet_root);
    }
  }
}

TEST_F(Chart, SeveralOperatorsAreSpreadAndKeptFromEviction) {
  const Objects objects = render(set({"operator.replicas=2"}));
  const json deployment = find(objects, "Deployment/kubegang-operator");
  EXPECT_EQ(deployment["spec"]["replicas"], 2);
  const json budget = find(objects, "PodDisruptionBudget/kubegang-operator");
  EXPECT_EQ(budget["spec"]["selector"], deployment["spec"]["selector"]);
  EXPECT_EQ(budget["spec"]["maxUnavailable"], 1);
  EXPECT_EQ(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
  const json spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"][0];
  EXPECT_EQ(spread["topologyKey"], "kubernetes.io/hostname");
  EXPECT_EQ(spread["labelSelector"], deployment["spec"]["selector"]);
  // One alone is not kept: a drain would wait for ever.
  for (const json& object : render()) EXPECT_NE(object["kind"], "PodDisruptionBudget");
}

TEST_F(Chart, TheNetworkPolicyLetsMetricsInAndTheApiServerOut) {
  const Objects objects =
      render(set({"networkPolicy.enabled=true", "networkPolicy.apiServerPorts={6443}",
                  "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b"}));
  const json policy = find(objects, "NetworkPolicy/kubegang")["spec"];
  EXPECT_EQ(policy["policyTypes"], json::parse(R"(["Ingress", "Egress"])"));
  EXPECT_EQ(
      policy["ingress"],
      json::parse(
          R"([{"ports": [{"port": "metrics"}], "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}])"));
  EXPECT_EQ(policy["egress"], json::parse(R"([{"ports": [{"port": 6443, "protocol": "TCP"}]}])"));
  const json selector = policy["podSelector"]["matchLabels"];
  const auto selects = [&](const json& labels) {
    for (const auto& [key, value] : selector.items()) {
      if (labels.value(key, "") != value) return false;
    }
    return true;
  };
  for (const char* id : {"Deployment/kubegang-operator", "DaemonSet/kubegang-agent"}) {
    const json pod = find(objects, id)["spec"]["template"];
    EXPECT_TRUE(selects(pod["metadata"]["labels"])) << id;
    EXPECT_EQ(pod["spec"]["containers"][0]["ports"][0]["name"], "metrics") << id;
  }
  EXPECT_TRUE(selects(find(objects, "Pod/kubegang-test")["metadata"]["labels"]));
}

TEST_F(Chart, PoliciesFailClosedAndNameTheUsersOfTheReleasesNamespace) {
  const HelmRun run = run_template("", "elsewhere");
  EXPECT_EQ(run.output.find("kubegang-system"), std::string::npos)
      << "a namespace is written into the chart";
  EXPECT_NE(run.output.find("system:serviceaccount:elsewhere:kubegang-operator"),
            std::string::npos);
  int policies = 0;
  for (const json& object : render()) {
    if (object["kind"] == "ValidatingAdmissionPolicyBinding") {
      EXPECT_EQ(object["spec"]["validationActions"], json::parse(R"(["Deny"])"));
    }
    if (object["kind"] != "ValidatingAdmissionPolicy") continue;
    ++policies;
    EXPECT_EQ(object["spec"]["failurePolicy"], "Fail") << id_of(object);
  }
  EXPECT_EQ(policies, 10);
}

// 350,000 units a question, 1,000,000 an expression.
// SOURCE: Kubernetes, apiserver/pkg/apis/cel and pkg/cel/library.
TEST_F(Chart, NoExpressionAsksTheAuthorizerMoreThanTwice) {
  for (const json& object : render()) {
    if (object["kind"] != "ValidatingAdmissionPolicy") continue;
    Objects all = object["spec"]["validations"];
    for (const json& variable : object["spec"].value("variables", json::array())) {
      all.push_back(variable);
    }
    for (const json& entry : all) {
      const std::string text = entry["expression"];
      int questions = 0;
      for (std::size_t at = text.find(".check("); at != std::string::npos;
           at = text.find(".check(", at + 1)) {
        ++questions;
      }
      EXPECT_LE(questions, 2) << id_of(object) << ": " << text;
    }
  }
}

// -- RBAC and docs/security.md -------------------------------------------------------------------

using Rules = std::map<std::string, Strings>;  // "jobs.kubegang.io/status" → its verbs

std::string kubectl_name(const std::string& group, const std::string& resource) {
  if (group.empty()) return resource;
  const std::size_t slash = resource.find('/');
  return resource.substr(0, slash) + "." + group +
         (slash == std::string::npos ? "" : resource.substr(slash));
}

Rules rules_of(const json& role) {
  Rules rules;
  for (const json& rule : role["rules"]) {
    std::string names;
    for (const std::string name : rule.value("resourceNames", json::array())) {
      names += " \"" + name + "\"";
    }
    for (const std::string group : rule["apiGroups"]) {
      for (const std::string resource : rule["resources"]) {
        for (const std::string verb : rule["verbs"]) {
          rules[kubectl_name(group, resource) + names].insert(verb);
        }
      }
    }
  }
  return rules;
}

// The tables under headings such as "### `ClusterRole/kubegang-agent`".
std::map<std::string, Rules> documented_rules() {
  std::map<std::string, Rules> roles;
  std::string role;
  std::istringstream lines{read(KUBEGANG_SOURCE_DIR "/docs/security.md")};
  const std::regex heading{"### `((Cluster)?Role/[a-z-]+)`"};
  const std::regex row{R"(\| (`.*) \| ([a-z, ]+) \| .+ \|)"};
  const std::regex resource{R"re(`([^`]+)`( "[^"]+")?)re"};
  const std::regex word{"[a-z]+"};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (line.starts_with("#")) role = std::regex_match(line, found, heading) ? found[1].str() : "";
    if (role.empty() || !std::regex_match(line, found, row)) continue;
    const std::string resources = found[1];
    const std::string verbs = found[2];
    for (std::sregex_iterator at{resources.begin(), resources.end(), resource}, end; at != end;
         ++at) {
      Strings& listed = roles[role][(*at)[1].str() + (*at)[2].str()];
      for (std::sregex_iterator verb{verbs.begin(), verbs.end(), word}; verb != end; ++verb) {
        EXPECT_TRUE(listed.insert(verb->str()).second) << role << ": twice in the table";
      }
    }
  }
  return roles;
}

TEST_F(Chart, EveryVerbIsInSecurityMdWithAReason) {
  std::map<std::string, Rules> rendered;
  for (const json& object : render()) {
    if (object["kind"] == "Role" || object["kind"] == "ClusterRole") {
      rendered[id_of(object)] = rules_of(object);
    }
  }
  EXPECT_EQ(rendered, documented_rules());
}

TEST_F(Chart, RolesHaveNoWildcardAndPeopleNoStatus) {
  for (const json& object : render(set(kSwitches))) {
    if (object["kind"] != "Role" && object["kind"] != "ClusterRole") continue;
    const bool of_a_program = id_of(object).find("kubegang-operator") != std::string::npos ||
                              id_of(object).find("kubegang-agent") != std::string::npos;
    for (const auto& [resource, verbs] : rules_of(object)) {
      EXPECT_EQ(resource.find('*'), std::string::npos) << id_of(object);
      EXPECT_FALSE(verbs.contains("*")) << id_of(object);
      EXPECT_TRUE(of_a_program || resource.find("/status") == std::string::npos)
          << id_of(object) << " " << resource;
    }
  }
}

TEST_F(Chart, RolesForPeopleAreAggregated) {
  const Objects objects = render();
  for (const auto& [role, to] :
       {std::pair{"user", "edit"}, std::pair{"admin", "admin"}, std::pair{"viewer", "view"}}) {
    const json labels =
        find(objects, std::string{"ClusterRole/kubegang-"} + role)["metadata"]["labels"];
    EXPECT_EQ(labels.value(std::string{"rbac.authorization.k8s.io/aggregate-to-"} + to, ""),
              "true");
  }
}

// -- Monitoring ----------------------------------------------------------------------------------

// Every name that /metrics of our programs has, with the names that a histogram's parts have.
Strings metric_names() {
  Strings names;
  std::istringstream lines{agent::Metrics{}.render() + control::Metrics{}.render()};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    names.insert(line.substr(0, line.find_first_of("{ ")));
  }
  return names;
}

// Of text in PromQL or JSON.
Strings names_used(const std::string& text) {
  Strings names;
  const std::regex name{"kubegang_(operator|agent)_[a-z_]+"};
  for (std::sregex_iterator at{text.begin(), text.end(), name}, end; at != end; ++at) {
    names.insert(at->str());
  }
  return names;
}

TEST_F(Chart, AlertsAndDashboardUseMetricsThatExist) {
  const Strings exist = metric_names();
  EXPECT_GT(exist.size(), 20U);
  Strings used;
  const Objects objects = render(set(kSwitches));
  const json alerts = find(objects, "PrometheusRule/kubegang");
  for (const json& rule : alerts["spec"]["groups"][0]["rules"]) {
    used.merge(names_used(rule["expr"]));
    EXPECT_TRUE(rule["annotations"].contains("summary")) << rule["alert"];
    EXPECT_TRUE(rule["annotations"].contains("description")) << rule["alert"];
  }
  EXPECT_GT(used.size(), 10U);
  const json config_map = find(objects, "ConfigMap/kubegang-dashboard");
  const json dashboard = json::parse(config_map["data"]["kubegang.json"].get<std::string>());
  for (const json& panel : dashboard["panels"]) {
    for (const json& target : panel["targets"]) used.merge(names_used(target["expr"]));
  }
  EXPECT_GT(used.size(), 20U);
  for (const std::string& name : used) EXPECT_TRUE(exist.contains(name)) << name;
}

TEST_F(Chart, OperationsMdSaysWhatToDoAboutEveryAlert) {
  const json rules = find(render(set(kSwitches)), "PrometheusRule/kubegang");
  Strings alerts;
  for (const json& rule : rules["spec"]["groups"][0]["rules"]) alerts.insert(rule["alert"]);
  Strings documented;
  const std::string text = read(KUBEGANG_SOURCE_DIR "/docs/operations.md");
  const std::regex name{"`(Kubegang[A-Za-z]+)`"};
  for (std::sregex_iterator at{text.begin(), text.end(), name}, end; at != end; ++at) {
    documented.insert((*at)[1]);
  }
  EXPECT_EQ(alerts, documented);
}

TEST_F(Chart, ServiceMonitorFindsTheMetricsPortsOfBothPrograms) {
  const Objects objects = render(set(kSwitches));
  const json service = find(objects, "Service/kubegang-metrics");
  for (const char* id : {"Deployment/kubegang-operator", "DaemonSet/kubegang-agent"}) {
    const json pod = find(objects, id)["spec"]["template"];
    EXPECT_EQ(pod["spec"]["containers"][0]["ports"][0]["name"],
              service["spec"]["ports"][0]["targetPort"]);
    for (const auto& [key, value] : service["spec"]["selector"].items()) {
      EXPECT_EQ(pod["metadata"]["labels"].value(key, ""), value);
    }
  }
  const json monitor = find(objects, "ServiceMonitor/kubegang");
  for (const auto& [key, value] : monitor["spec"]["selector"]["matchLabels"].items()) {
    EXPECT_EQ(service["metadata"]["labels"].value(key, ""), value);
  }
}

// -- Values and their README ---------------------------------------------------------------------

// "agent.resources" → its default, down to objects that are one value for Kubernetes.
void flatten(const json& values, const std::string& prefix, std::map<std::string, json>& out) {
  for (const auto& [key, value] : values.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const bool whole = key == "resources" || key == "labels" || !value.is_object() || value.empty();
    if (whole) {
      out[path] = value;
    } else {
      flatten(value, path, out);
    }
  }
}

TEST_F(Chart, ReadmeListsEveryValueWithItsDefault) {
  std::map<std::string, json> values;
  flatten(read_yaml(std::string{kChart} + "/values.yaml"), "", values);
  std::map<std::string, json> listed;
  const std::regex row{R"(\| `([A-Za-z.]+)` \| `([^`]*)` \| .+ \|)"};
  std::istringstream lines{read(std::string{kChart} + "/README.md")};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    listed[found[1]] = json::parse(found[2].str(), nullptr, false);
  }
  EXPECT_EQ(listed, values);
}

// -- What people copy ----------------------------------------------------------------------------

TEST_F(Chart, TheDockerfileMakesTheImagesOfTheChart) {
  const std::string text = read(KUBEGANG_SOURCE_DIR "/Dockerfile");
  // The user that the operator's pod has, and no shell in either image.
  EXPECT_THAT(text, testing::HasSubstr("FROM scratch AS operator\n"
                                       "COPY --from=build /tree/operator /\n"
                                       "USER 65532:65532\n"
                                       "ENTRYPOINT [\"/kubegang-operator\"]\n"));
  EXPECT_THAT(text, testing::HasSubstr("FROM scratch AS agent\n"
                                       "COPY --from=build /tree/agent /\n"
                                       "ENTRYPOINT [\"/kubegang-agent\"]\n"));
}

TEST_F(Chart, DocsNameImagesAndValuesThatExist) {
  const std::string version =
      read_yaml(std::string{kChart} + "/Chart.yaml")["appVersion"].get<std::string>();
  EXPECT_EQ(version, KUBEGANG_VERSION) << "of Chart.yaml and of CMakeLists.txt";
  const std::regex image{"kubegang/(operator|agent|\\$name):([0-9a-z.]+)"};
  const std::regex option{"--set '?([^ '`\\\\\n]+)"};
  int images = 0;
  for (const char* file : {"Dockerfile", "README.md", "docs/kind.md", "docs/security.md",
                           "docs/operations.md", "charts/kubegang/README.md"}) {
    const std::string text = read(std::string{KUBEGANG_SOURCE_DIR "/"} + file);
    for (std::sregex_iterator at{text.begin(), text.end(), image}, end; at != end; ++at) {
      EXPECT_EQ((*at)[2], version) << file;
      ++images;
    }
    std::vector<std::string> values;
    for (std::sregex_iterator at{text.begin(), text.end(), option}, end; at != end; ++at) {
      values.push_back((*at)[1]);
    }
    if (!values.empty()) check_whole(render(set(values)), file);
  }
  EXPECT_GE(images, 6);
}

// -- Our own objects, against our own schemas ----------------------------------------------------

class ChartObjects : public Chart {
 protected:
  ChartObjects() {
    const base::Status crds = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
    EXPECT_TRUE(crds.ok()) << crds.error().message;
  }

  kube::ManualClock clock_;
  kube::ManualSleeper sleeper_{clock_};
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_};
  kube::Client client_{transport_, clock_, sleeper_, {}};
};

TEST_F(ChartObjects, SchedulerConfigIsValid) {
  const auto created = client_.create_json<kube::SchedulerConfig>(
      "", find(render(set({"schedulerConfig.spec.timeSlice=5s"})), "SchedulerConfig/default"));
  EXPECT_TRUE(created.ok()) << created.error().message;
}

TEST_F(ChartObjects, ExamplesAreValid) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{KUBEGANG_SOURCE_DIR "/examples"}) {
    const std::string file = entry.path();
    if (entry.path().extension() != ".yaml" || file.ends_with("/kind/cluster.yaml")) continue;
    ++files;
    const auto documents = devcluster::read_yaml_file(file);
    ASSERT_TRUE(documents.ok()) << documents.error().message;
    for (const std::string& document : *documents) {
      const json object = json::parse(document);
      const auto check = [&](const auto& created) {
        EXPECT_TRUE(created.ok()) << file << ": " << created.error().message;
      };
      // Dry runs, since several files have jobs of one name.
      if (object["kind"] == "Partition") {
        check(client_.create_json<kube::Partition>("", object, {.dry_run = true}));
      } else if (object["kind"] == "Job") {
        check(client_.create_json<kube::Job>("default", object, {.dry_run = true}));
      } else if (object["kind"] == "SchedulerConfig") {
        check(client_.create_json<kube::SchedulerConfig>("", object, {.dry_run = true}));
      } else if (object["kind"] == "QOS") {
        check(client_.create_json<kube::Qos>("", object, {.dry_run = true}));
      } else {
        ADD_FAILURE() << file << ": unknown kind " << object["kind"];
      }
    }
  }
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace charts
