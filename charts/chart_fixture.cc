#include "charts/chart_fixture.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kube/testing/api_server/yaml_json.h"

namespace charts {

// Skipped without Helm, since the templates can be rendered by nothing else.
void Chart::SetUp() {
  if (helm_program().empty()) {
    GTEST_SKIP() << "there is no Helm: e2e/kubernetes/build-tools helm builds one (needs Go)";
  }
}

// Helm's options for these values, "a.b=c" each. Quoted for the shell: some values have brackets.
std::string set(const std::vector<std::string>& values) {
  std::string options;
  for (const std::string& value : values) options += " --set '" + value + "'";
  return options;
}

// Sets each value away from its default, so that every branch of the templates is rendered once. A
// new value of the chart needs a line here.
std::vector<std::string> all_switches() {
  return {
      "commonLabels.team=hpc",
      "crds.enabled=false",
      "operator.priorityClassName=high",
      "operator.podLabels.team=hpc",
      "operator.podAnnotations.team=hpc",
      "operator.extraEnv[0].name=TZ",
      "operator.serviceAccount.create=false",
      "operator.serviceAccount.name=decider",
      "operator.serviceAccount.annotations.team=hpc",
      "operator.logLevel=debug",
      "operator.writers=4",
      "agent.tolerations[0].key=gpu",
      "agent.affinity.nodeAffinity.any=thing",
      "agent.priorityClassName=",
      "agent.podLabels.team=hpc",
      "agent.podAnnotations.team=hpc",
      "agent.extraEnv[0].name=TZ",
      "agent.serviceAccount.create=false",
      "agent.serviceAccount.name=switcher",
      "agent.serviceAccount.annotations.team=hpc",
      "agent.logLevel=debug",
      "operator.replicas=3",
      "operator.tolerations[0].operator=Exists",
      "operator.affinity.nodeAffinity.any=thing",
      "operator.extraArgs[0]=--retry-period=1s",
      std::string{"operator.digest="} + kDigest,
      std::string{"agent.digest="} + kDigest,
      "agent.seLinuxOptions.type=spc_t",
      "agent.realtime=false",
      "agent.nodeSelector.pool=batch",
      "agent.maxUnavailable=2",
      "agent.cgroupDriver=cgroupfs",
      "agent.kubeletCgroupRoot=/kubelet",
      "agent.extraArgs[0]=--no-supervisor",
      "image.registry=registry.example/",
      "image.pullSecrets[0].name=secret",
      "adoption.namespaces=true",
      "adoption.pods=true",
      "adoption.podGroups=true,adoption.pods=true",  // the one needs the other
      "records.enabled=true",
      "records.api.enabled=true",
      "records.postgresql.secret=address",
      "dashboard.enabled=true",
      "dashboard.readNodes=true",
      "dashboard.hosts[0]=gang.example.org",
      "schedulerConfig.create=false",
      "schedulerConfig.manage=true",
      "schedulerConfig.spec.timeSlice=5s",
      "rbac.bindLookToAuthenticated=false",
      "rbac.lookersReadTimetables=false",
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
      "test.enabled=false",
      "test.partition=batch",
  };
}

// The rules that hold for every rendering, whatever its values are:
// 1. Each object is rendered once, is complete, and bears the chart's label.
void check_whole(const Objects& objects, const std::string& options) {
  SCOPED_TRACE(options);
  std::set<std::string> ids;
  // Those that no binding has named yet.
  std::set<std::string> policies;
  for (const json& object : objects) {
    const std::string id = id_of(object);
    SCOPED_TRACE(id);
    EXPECT_TRUE(ids.insert(id + "." + object.value("/metadata/namespace"_json_pointer, "")).second)
        << "rendered twice";
    EXPECT_NE(object.value("apiVersion", ""), "");
    EXPECT_EQ(object.value("/metadata/labels/app.kubernetes.io~1name"_json_pointer, ""),
              "kubegang");
    const std::string kind = object["kind"];
    if (kind.ends_with("AdmissionPolicy")) policies.insert(object["metadata"]["name"]);
  }
  for (const json& object : objects) {
    SCOPED_TRACE(id_of(object));
    // 2. Bindings bind what exists: Kubernetes accepts dangling ones, which then silently grant or
    //    check nothing.
    if (object.contains("roleRef")) {
      const std::string role = object["roleRef"]["kind"].get<std::string>() + "/" +
                               object["roleRef"]["name"].get<std::string>();
      EXPECT_TRUE(std::any_of(objects.begin(), objects.end(),
                              [&](const json& other) { return id_of(other) == role; }))
          << "binds " << role << ", which does not exist";
    }
    if (object["kind"].get<std::string>().ends_with("AdmissionPolicyBinding")) {
      EXPECT_EQ(policies.erase(object["spec"]["policyName"]), 1U) << "binds no policy";
    }
    // 3. Deployments and DaemonSets select the pods of their own template; the API server refuses
    //    others.
    const auto selector = "/spec/selector/matchLabels"_json_pointer;
    const auto labels = "/spec/template/metadata/labels"_json_pointer;
    if (object.contains(selector) && object.contains(labels)) {
      for (const auto& [key, value] : object[selector].items()) {
        EXPECT_EQ(object[labels].value(key, ""), value) << "does not select its own pods";
      }
    }
  }
  // 4. A policy without a binding checks nothing.
  EXPECT_TRUE(policies.empty()) << "not bound: " << *policies.begin();
}

// Returns the text of a file; a failure of the test if it cannot be read.
std::string read(const std::string& path) {
  std::ifstream file{path};
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the first document of a YAML file.
json read_yaml(const std::string& path) {
  const auto documents = devcluster::read_yaml_file(path);
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  return documents.ok() && !documents->empty() ? json::parse(documents->front()) : json{};
}

}  // namespace charts
