// The parts of the chart: what runs, under which account, and how it is confined.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/wellknown.h"
#include "charts/chart_fixture.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/program/options.h"
#include "operator/process/options.h"

namespace charts {
namespace {

// The chart's CRDs are copies of those in crds/, but for labels and the annotation that keeps them.
// A copy that lags behind would drop fields of objects that users write.
TEST_F(Chart, CrdsAreOursAndStay) {
  const Objects objects = render();
  for (const char* name : {"accounts", "jobs", "nodetimetables", "partitions", "qos",
                           "schedulerconfigs", "usagerecords"}) {
    json rendered = find(objects, std::string{"CustomResourceDefinition/"} + name + ".kubegang.io");
    // Without it `helm uninstall` would delete the CRDs, and with them every job of every user.
    EXPECT_EQ(rendered["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    rendered["metadata"].erase("annotations");
    rendered["metadata"].erase("labels");
    EXPECT_EQ(rendered,
              read_yaml(std::string{KUBEGANG_SOURCE_DIR "/crds/kubegang.io_"} + name + ".yaml"));
  }
}

// Returns the command line of a container, as the program gets it.
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

// The program's own parser reads what the chart renders, so an option that is renamed in one of the
// two is found here.
TEST_F(Chart, OperatorUnderstandsItsCommandLine) {
  const auto parsed =
      control::parse_options(arguments_of(find(render(), "Deployment/kubegang-operator")));
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.lease(), (kube::ObjectKey{kNamespace, "kubegang-operator"}));
  EXPECT_TRUE(parsed.options.leader_elect);
  EXPECT_EQ(parsed.options.metrics_port, 8080);
  const auto adopting = control::parse_options(
      arguments_of(find(render(set({"adoption.pods=true", "adoption.podGroups=true"})),
                        "Deployment/kubegang-operator")));
  ASSERT_FALSE(adopting.exit_code) << adopting.text;
  EXPECT_TRUE(adopting.options.adopt_pods);
  EXPECT_TRUE(adopting.options.adopt_pod_groups);
}

// The value has brackets, as in a URL. The operator takes address and port apart, the agent does
// not.
TEST_F(Chart, BothProgramsListenOnIpv6WhereThatIsAskedFor) {
  const Objects objects = render(set({"metrics.address=[::]"}));
  const auto of_operator =
      control::parse_options(arguments_of(find(objects, "Deployment/kubegang-operator")));
  EXPECT_EQ(of_operator.options.metrics_host, "::");
  const auto of_agent =
      agent::parse_options(arguments_of(find(objects, "DaemonSet/kubegang-agent")));
  EXPECT_EQ(of_agent.options.metrics_address, "[::]:8081");
}

// The agent fails open if it looks for the Lease in another place than the operator keeps it.
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

// Returns the pods of both programs and that of `helm test`.
std::map<std::string, json> pod_specs(const Objects& objects) {
  return {{"operator", find(objects, "Deployment/kubegang-operator")["spec"]["template"]["spec"]},
          {"agent", find(objects, "DaemonSet/kubegang-agent")["spec"]["template"]["spec"]},
          {"test", find(objects, "Pod/kubegang-test")["spec"]}};
}

// A registry with a port, a tag for both programs, and a digest for the operator alone. `helm test`
// must run the operator's image by the digest, too, or it would test another program.
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

// A selector of the values is added to the chart's own and must not replace it.
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

// The test's pods need the operator's tolerations: on a cluster whose nodes are all tainted they
// could not run otherwise. Further arguments come last, so they win.
TEST_F(Chart, PodsGoAndRunAsTheValuesSay) {
  const Objects objects = render(
      set({"operator.tolerations[0].operator=Exists", "operator.affinity.nodeAffinity.any=thing",
           "operator.extraArgs[0]=--log-level=debug", "agent.extraArgs[0]=--log-level=warn"}));
  std::map<std::string, json> pods = pod_specs(objects);
  for (const char* name : {"operator", "test"}) {
    EXPECT_EQ(pods[name]["tolerations"].at(1), json::parse(R"({"operator": "Exists"})")) << name;
  }
  EXPECT_EQ(pods["operator"]["affinity"], json::parse(R"({"nodeAffinity": {"any": "thing"}})"));
  EXPECT_EQ(pods["operator"]["containers"][0]["args"].back(), "--log-level=debug");
  EXPECT_EQ(pods["agent"]["containers"][0]["args"].back(), "--log-level=warn");
}

// Partitions with taintNodes may have all nodes of a cluster. An operator that is restarted there
// would stay Pending, and with it every job.
TEST_F(Chart, TheOperatorsPodsTolerateTheTaintThatItSets) {
  const json own = json::parse(
      R"({"key": "kubegang.io/managed", "operator": "Exists", "effect": "NoSchedule"})");
  EXPECT_EQ(own["key"], kube::kTaintManaged);
  for (const char* values : {"operator.tolerations=null", "operator.tolerations[0].key=gpu"}) {
    const Objects objects = render(set({values}));
    for (const json& pod : {pod_specs(objects)["operator"], pod_specs(objects)["test"],
                            find(objects, "Pod/kubegang-test-nodes")["spec"]}) {
      ASSERT_TRUE(pod.contains("tolerations")) << values;
      EXPECT_EQ(pod["tolerations"].at(0), own) << values;
    }
  }
}

// Another version of the chart alone restarts no agent. A label with the version would change the
// pod template of the DaemonSet, and the agents of all nodes would be replaced one after the other.
TEST_F(Chart, PodsHaveNoLabelButTheirSelectors) {
  const Objects objects = render();
  for (const char* id : {"Deployment/kubegang-operator", "DaemonSet/kubegang-agent"}) {
    const json workload = find(objects, id);
    EXPECT_EQ(workload["spec"]["template"]["metadata"]["labels"],
              workload["spec"]["selector"]["matchLabels"])
        << id;
  }
}

// Some clusters allow system priority classes only in namespaces with such a quota. If it misses a
// class, the API server refuses the pods of that program.
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

// An administrator has not opened partitions to all users. `helm test` must still be able to submit
// its job.
TEST_F(Chart, TheTestMayUsePartitionsWhoeverElseMay) {
  const json binding =
      find(render(set({"rbac.bindUseToAuthenticated=false"})), "ClusterRoleBinding/kubegang-test");
  EXPECT_EQ(binding["roleRef"]["name"], "kubegang-use-all-partitions");
  EXPECT_EQ(binding["subjects"], json::parse(R"([{"kind": "ServiceAccount", "name": "kubegang-test",
                             "namespace": "kubegang-system"}])"));
}

// The policies know these three by their names. An account that is missing from the policy's list
// could not protect its own tokens.
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

// One account is made under another name, the other one exists already and must not be made. Every
// place that names an account follows, or the program would start without its rights.
TEST_F(Chart, AServiceAccountOfAnotherNameIsBoundAndKnownToThePolicies) {
  const Objects objects = render(
      set({"operator.serviceAccount.name=decider", "operator.serviceAccount.annotations.cloud=role",
           "agent.serviceAccount.create=false", "agent.serviceAccount.name=switcher"}));
  const json account = find(objects, "ServiceAccount/decider");
  EXPECT_EQ(account["metadata"]["annotations"]["cloud"], "role");
  EXPECT_EQ(account["automountServiceAccountToken"], false);
  for (const json& object : objects) EXPECT_NE(id_of(object), "ServiceAccount/switcher");
  for (const auto& [name, want] :
       {std::pair{"operator", "decider"}, std::pair{"agent", "switcher"}}) {
    EXPECT_EQ(pod_specs(objects).at(name)["serviceAccountName"], want);
    const std::string id = std::string{"kubegang-"} + name;
    EXPECT_EQ(find(objects, "ClusterRoleBinding/" + id)["subjects"][0]["name"], want);
    EXPECT_EQ(find(objects, "RoleBinding/" + id + "-lease")["subjects"][0]["name"], want);
    const json policy = find(objects, "ValidatingAdmissionPolicy/kubegang-own-tokens");
    EXPECT_THAT(policy["spec"]["matchConditions"][0]["expression"].get<std::string>(),
                testing::HasSubstr(std::string{"'system:serviceaccount:kubegang-system:"} + want));
  }
}

// One of the common labels has the name of the chart's own, which must win: selectors depend on it.
TEST_F(Chart, LabelsAnnotationsAndVariablesReachThePods) {
  const Objects objects = render(
      set({"commonLabels.team=hpc", "commonLabels.app\\.kubernetes\\.io/name=other",
           "operator.podLabels.a=b", "operator.podAnnotations.c=d", "operator.extraEnv[0].name=TZ",
           "operator.extraEnv[0].value=UTC", "operator.logLevel=debug", "operator.writers=4"}));
  for (const json& object : objects) {
    EXPECT_EQ(object["metadata"]["labels"]["team"], "hpc") << id_of(object);
    EXPECT_EQ(object["metadata"]["labels"]["app.kubernetes.io/name"], "kubegang");
  }
  const json deployment = find(objects, "Deployment/kubegang-operator");
  const json pod = deployment["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(pod["metadata"]["annotations"]["c"], "d");
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][1], (json{{"name", "TZ"}, {"value", "UTC"}}));
  const auto parsed = control::parse_options(arguments_of(deployment));
  EXPECT_EQ(parsed.options.log_level, "debug");
  EXPECT_EQ(parsed.options.writers, 4);
}

// Only times and thresholds are values: a probe that asks elsewhere would restart what works. The
// defaults are compared as a whole, and then each changed number by itself.
TEST_F(Chart, ProbesKeepTheirHandlersWhateverTheValuesSay) {
  const auto probes_of = [](const Objects& objects, const std::string& name) {
    const json pod = pod_specs(objects).at(name);
    return std::pair{pod["containers"][0]["livenessProbe"], pod["containers"][0]["readinessProbe"]};
  };
  const json alive{{"path", "/healthz"}, {"port", "metrics"}};
  const json ready{{"path", "/readyz"}, {"port", "metrics"}};
  const Objects changed =
      render(set({"operator.livenessProbe.periodSeconds=30", "agent.livenessProbe.timeoutSeconds=5",
                  "operator.readinessProbe.initialDelaySeconds=3"}));
  for (const char* name : {"operator", "agent"}) {
    const auto [liveness, readiness] = probes_of(render(), name);
    EXPECT_EQ(liveness, (json{{"httpGet", alive}, {"periodSeconds", 10}, {"failureThreshold", 6}}));
    EXPECT_EQ(readiness, (json{{"httpGet", ready}, {"periodSeconds", 5}}));
    EXPECT_EQ(probes_of(changed, name).first["httpGet"], alive);
    EXPECT_EQ(probes_of(changed, name).second["httpGet"], ready);
  }
  EXPECT_EQ(probes_of(changed, "operator").first["periodSeconds"], 30);
  EXPECT_EQ(probes_of(changed, "operator").second["initialDelaySeconds"], 3);
  EXPECT_EQ(probes_of(changed, "agent").first["timeoutSeconds"], 5);
}

// The chart's own volumes are read from a rendering without values, so that the comparison holds
// whatever they are. The history limit goes through the same values.
TEST_F(Chart, VolumesOfTheValuesStandBesideTheChartsOwn) {
  std::vector<std::string> values;
  for (const std::string program : {"operator", "agent"}) {
    values.push_back(program + ".extraVolumes[0].name=more");
    values.push_back(program + ".extraVolumes[0].configMap.name=certificates");
    values.push_back(program + ".extraVolumeMounts[0].name=more");
    values.push_back(program + ".extraVolumeMounts[0].mountPath=/more");
    values.push_back(program + ".revisionHistoryLimit=3");
  }
  const Objects plain = render(), objects = render(set(values));
  const json volume{{"name", "more"}, {"configMap", {{"name", "certificates"}}}};
  const json mount{{"name", "more"}, {"mountPath", "/more"}};
  for (const auto& [program, id] : {std::pair{"operator", "Deployment/kubegang-operator"},
                                    std::pair{"agent", "DaemonSet/kubegang-agent"}}) {
    const json before = pod_specs(plain).at(program), pod = pod_specs(objects).at(program);
    json volumes = before.value("volumes", json::array());
    volumes.push_back(volume);
    EXPECT_EQ(pod["volumes"], volumes) << program;
    json mounts = before["containers"][0].value("volumeMounts", json::array());
    mounts.push_back(mount);
    EXPECT_EQ(pod["containers"][0]["volumeMounts"], mounts) << program;
    EXPECT_EQ(find(plain, id)["spec"]["revisionHistoryLimit"], 10) << id;
    EXPECT_EQ(find(objects, id)["spec"]["revisionHistoryLimit"], 3) << id;
  }
}

// A managed configuration is an object of the release, which Helm patches. It is there from when
// its kind is known; otherwise the first installation makes it by a hook. Three renderings: managed
// before the kind exists, managed after it, and not managed, where Helm makes the object once and
// never touches it again.
TEST_F(Chart, AManagedSchedulerConfigBelongsToTheRelease) {
  const std::string managed = set({"schedulerConfig.manage=true"});
  for (const json& object : render(managed)) EXPECT_NE(object["kind"], "SchedulerConfig");
  const json later = find(render(managed + " --api-versions kubegang.io/v1alpha1/SchedulerConfig"),
                          "SchedulerConfig/default")["metadata"]["annotations"];
  EXPECT_EQ(later, (json{{"helm.sh/resource-policy", "keep"}}));
  const json own = find(render(), "SchedulerConfig/default")["metadata"]["annotations"];
  EXPECT_EQ(own["helm.sh/hook"], "post-install");
}

// It needs nothing of its node. The whole security contexts are compared, so that no field can be
// added in silence.
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

// uid 0 owns the freeze files; no capability is needed for them (freezer.md 5.6). SYS_NICE is for
// SCHED_FIFO, IPC_LOCK for memory that stays resident. A CPU limit would throttle the agent in the
// moment of a switch. It must run on every node of a partition, whatever its taints, and replacing
// all agents at once would stop all turns.
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
    want["capabilities"].erase("add");
    EXPECT_EQ(pod["initContainers"][0]["securityContext"], want);
    // An alert tells where the kernel refuses SCHED_FIFO and more is needed (freezer.md rule 2).
    EXPECT_EQ(pod["containers"][0]["resources"]["requests"]["cpu"], "100m");
    EXPECT_FALSE(pod["containers"][0]["resources"]["limits"].contains("cpu"));
    EXPECT_EQ(pod["priorityClassName"], "system-node-critical");
    EXPECT_EQ(pod["tolerations"], json::parse(R"([{"operator": "Exists"}])"));
  }
  EXPECT_EQ(
      find(render(),
           "DaemonSet/kubegang-agent")["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"],
      "10%");
}

// The findings of the agents come from the API server: the pod needs no right on any node. A lower
// hook weight runs first. The two pods differ in nothing but their container.
TEST_F(Chart, HelmTestAsksWhatEveryNodeGrantsBeforeItRunsAGang) {
  const Objects objects = render();
  const json nodes = find(objects, "Pod/kubegang-test-nodes");
  EXPECT_EQ(nodes["metadata"]["annotations"]["helm.sh/hook"], "test");
  EXPECT_EQ(nodes["metadata"]["annotations"]["helm.sh/hook-weight"], "-1");
  const json container = nodes["spec"]["containers"][0];
  const auto parsed = agent::parse_options(container["args"].get<std::vector<std::string>>());
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.command, agent::Command::kCheck);
  EXPECT_TRUE(parsed.options.whole_cluster);
  EXPECT_EQ(container["image"],
            find(objects,
                 "DaemonSet/kubegang-agent")["spec"]["template"]["spec"]["containers"][0]["image"]);
  json pod = nodes["spec"];
  json gang = find(objects, "Pod/kubegang-test")["spec"];
  pod.erase("containers");
  gang.erase("containers");
  EXPECT_EQ(pod, gang);
  EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
  const json binding = find(objects, "ClusterRoleBinding/kubegang-test-nodes");
  EXPECT_EQ(binding["subjects"][0]["name"], "kubegang-test");
}

// Gives this process the variables of a container, for as long as it lives. The parser reads them
// as the program does in the container.
class Variables {
 public:
  explicit Variables(const json& container) {
    for (const json& variable : container["env"]) {
      if (!variable.contains("value")) continue;
      names_.push_back(variable["name"]);
      ::setenv(names_.back().c_str(), variable["value"].get<std::string>().c_str(), 1);
    }
  }
  ~Variables() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::string> names_;
};

// A container of its own: another memory cgroup and another restart. Not a second one in
// `containers`: it begins before the agent, and ends after it. An init container that restarts
// always is a sidecar. Its arguments and variables are read by the agent's own parser.
TEST_F(Chart, TheGuardStandsBesideTheAgent) {
  const json pod = find(render(set({"agent.logLevel=warn"})),
                        "DaemonSet/kubegang-agent")["spec"]["template"]["spec"];
  ASSERT_EQ(pod["containers"].size(), 1U);
  ASSERT_EQ(pod["initContainers"].size(), 1U);
  const json guard = pod["initContainers"][0];
  const json agent = pod["containers"][0];
  EXPECT_EQ(guard["restartPolicy"], "Always");
  for (const char* field : {"image", "imagePullPolicy", "volumeMounts"}) {
    EXPECT_EQ(guard[field], agent[field]) << field;
  }
  EXPECT_FALSE(guard["resources"]["limits"].contains("cpu"));
  const Variables variables{guard};
  const auto parsed = agent::parse_options(guard["args"].get<std::vector<std::string>>());
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.command, agent::Command::kGuard);
  EXPECT_EQ(parsed.options.log_level, "warn");
  EXPECT_EQ(parsed.options.cgroup_root, "/host/cgroup");
  EXPECT_EQ(parsed.options.run_directory, "/run/kubegang");
}

// Without an option, as `kubectl exec` would call it.
TEST_F(Chart, InspectInTheAgentsContainerFindsTheHostsCgroups) {
  const json pod = find(render(set({"agent.kubeletCgroupRoot=/kubelet"})),
                        "DaemonSet/kubegang-agent")["spec"]["template"]["spec"];
  const Variables variables{pod["containers"][0]};
  const auto parsed = agent::parse_options({"inspect"});
  EXPECT_EQ(parsed.options.cgroup_root, "/host/cgroup");
  EXPECT_EQ(parsed.options.kubelet_cgroup_root, "/kubelet");
  EXPECT_EQ(parsed.options.run_directory, "/run/kubegang");
}

// The mount is where the agent looks for it. With two cgroup drivers and three roots: if the mount
// and the agent disagree, the agent finds no pod and freezes nothing. It must not see the cgroups
// of the host's services.
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
      const Variables variables{pod["containers"][0]};
      const auto parsed = agent::parse_options(arguments_of(daemon_set));
      EXPECT_EQ(parsed.options.cgroup_root, "/host/cgroup");
      EXPECT_EQ(parsed.options.kubelet_cgroup_root, kubelet_root);
    }
  }
}

// Two replicas on one node would fail together. The budget lets pods that are not ready be evicted
// at any time, so a broken operator keeps no node from being drained.
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
  // One alone is not kept: a drain would never end.
  for (const json& object : render()) EXPECT_NE(object["kind"], "PodDisruptionBudget");
}

TEST_F(Chart, SpreadAndBudgetCanBeTurnedOff) {
  const Objects objects =
      render(set({"operator.replicas=2", "operator.podDisruptionBudget=false"}) +
             " --set-json 'operator.topologySpreadConstraints=[]'");
  for (const json& object : objects) EXPECT_NE(object["kind"], "PodDisruptionBudget");
  EXPECT_EQ(
      find(objects,
           "Deployment/kubegang-operator")["spec"]["template"]["spec"]["topologySpreadConstraints"],
      json::array());
}

// Helm runs it before it brings older CRDs back: the CRDs of the revision that comes, read by the
// program of that revision, with the operator's rights.
TEST_F(Chart, ARollbackAsksWhetherItsCrdsFit) {
  const Objects objects = render(std::string{"--set operator.digest="} + kDigest);
  const json crds = find(objects, "ConfigMap/kubegang-check-crds");
  EXPECT_EQ(crds["data"].size(), 7U);
  const json job = find(objects, "Job/kubegang-check-crds");
  for (const json& hook : {crds, job}) {
    EXPECT_EQ(hook["metadata"]["annotations"]["helm.sh/hook"], "pre-rollback");
  }
  const json pod = job["spec"]["template"]["spec"];
  const json deployment = find(objects, "Deployment/kubegang-operator");
  EXPECT_EQ(pod["containers"][0]["image"],
            deployment["spec"]["template"]["spec"]["containers"][0]["image"]);
  EXPECT_EQ(pod["serviceAccountName"],
            deployment["spec"]["template"]["spec"]["serviceAccountName"]);
  EXPECT_EQ(pod["containers"][0]["command"], (json{"/kubectl-gang", "check-crds", "/crds"}));
  // Where the CRDs are not the release's, a rollback does not touch them.
  EXPECT_EQ(json(render(set({"crds.enabled=false"}))).dump().find("pre-rollback"),
            std::string::npos);
}

// The policy must select all three pods, and name a port that they have.
TEST_F(Chart, TheNetworkPolicyLetsMetricsInAndTheApiServerOut) {
  const Objects objects =
      render(set({"networkPolicy.enabled=true", "networkPolicy.apiServerPorts={6443}",
                  "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b"}));
  const json policy = find(objects, "NetworkPolicy/kubegang")["spec"];
  EXPECT_EQ(policy["policyTypes"], json::parse(R"(["Ingress", "Egress"])"));
  EXPECT_EQ(policy["ingress"], json::parse(
                                   R"([{"ports": [{"port": "metrics"}],
                 "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}])"));
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

// The chart is rendered into another namespace, where no policy may speak of the default one: it
// would protect accounts that do not exist. "Fail" refuses a request if the policy itself cannot be
// evaluated. A new policy must be counted here.
TEST_F(Chart, PoliciesFailClosedAndNameTheUsersOfTheReleasesNamespace) {
  const HelmRun run = run_template("", "elsewhere");
  EXPECT_EQ(run.output.find("kubegang-system"), std::string::npos)
      << "a namespace is written into the chart";
  EXPECT_NE(run.output.find("system:serviceaccount:elsewhere:kubegang-operator"),
            std::string::npos);
  int policies = 0;
  for (const json& object : render(set({"adoption.pods=true", "adoption.podGroups=true"}))) {
    if (object["kind"] == "ValidatingAdmissionPolicyBinding") {
      EXPECT_EQ(object["spec"]["validationActions"], json::parse(R"(["Deny"])"));
    }
    if (object["kind"] != "ValidatingAdmissionPolicy") continue;
    ++policies;
    EXPECT_EQ(object["spec"]["failurePolicy"], "Fail") << id_of(object);
  }
  EXPECT_EQ(policies, 20);
}

// A pod that says it belongs to a job keeps jobs off its node, or hides its memory from the
// operator. A controller can be given to a pod as it is made and later. Only the first sentence is
// reported; the others are about the operator. No condition must ask for the operator, or the
// policy would check no other user. (What is denied: e2e/kubernetes/policies/beyond-rbac.sh.)
TEST_F(Chart, OnlyTheOperatorGivesPodsAJobAsTheirController) {
  const json policy = find(render(), "ValidatingAdmissionPolicy/kubegang-operator-pods")["spec"];
  EXPECT_EQ(policy["/matchConstraints/resourceRules/0/operations"_json_pointer],
            json::parse(R"(["CREATE", "UPDATE", "DELETE"])"));
  const std::string is_operator =
      "request.userInfo.username == 'system:serviceaccount:kubegang-system:kubegang-operator'";
  ASSERT_EQ(policy["matchConditions"].size(), 1U);
  const std::string matches = policy["matchConditions"][0]["expression"];
  EXPECT_TRUE(matches.starts_with(is_operator + " ? request.operation != 'UPDATE' && !("));
  EXPECT_THAT(matches, testing::HasSubstr(" : request.operation != 'DELETE' && object.metadata."));
  EXPECT_EQ(policy["validations"][0]["expression"], is_operator);
}

// A job's pod keeps the fields of its start, even for users who may patch it. The resources of a
// pod are changed by a subresource, which a rule about pods alone does not see. (What is denied:
// e2e/kubernetes/policies/roles.sh.)
TEST_F(Chart, CpusDeadlineAndResourcesOfAJobsPodDoNotChange) {
  const json policy = find(render(), "ValidatingAdmissionPolicy/kubegang-cpu-sets")["spec"];
  EXPECT_EQ(policy["/matchConstraints/objectSelector/matchExpressions/0/key"_json_pointer],
            "kubegang.io/job");
  EXPECT_EQ(policy["/matchConstraints/resourceRules/0/resources"_json_pointer],
            json::parse(R"(["pods", "pods/resize"])"));
  std::string all;
  for (const json& each : policy["validations"]) all += each["expression"].get<std::string>() + " ";
  for (const char* part : {"kubegang.io/cpuset", "kubegang.io/job", "activeDeadlineSeconds",
                           "request.?subResource.orValue('') != 'resize'",
                           "oldObject.metadata.?ownerReferences.orValue([]).all("}) {
    EXPECT_THAT(all, testing::HasSubstr(part));
  }
}

// By whichever label a gated pod names its gang, its author is asked for the same rights.
TEST_F(Chart, AuthorsOfPodsOfPodGroupsAreAskedAsThoseOfOtherGatedPods) {
  const Objects objects = render(set({"adoption.pods=true", "adoption.podGroups=true"}));
  const json ours = find(objects, "ValidatingAdmissionPolicy/kubegang-gated-pods")["spec"];
  for (const auto& [name, label] :
       {std::pair{"kubegang-grouped-pods", "scheduling.x-k8s.io/pod-group"},
        std::pair{"kubegang-grouped-pods-before", "pod-group.scheduling.sigs.k8s.io"}}) {
    json theirs = find(objects, "ValidatingAdmissionPolicy/" + std::string{name})["spec"];
    EXPECT_EQ(theirs["/matchConstraints/objectSelector/matchExpressions/0/key"_json_pointer],
              label);
    EXPECT_EQ(theirs["validations"].size(), ours["validations"].size()) << name;
    EXPECT_EQ(theirs["matchConditions"].size(), ours["matchConditions"].size() + 1) << "the gate";
  }
}

// Four renderings: an API server that is too old, adoption of namespaces without that of batch
// Jobs, the switch off, and the two versions of the API. A policy in a version that the API server
// lacks would fail the whole installation.
TEST_F(Chart, NamespacesAreAdoptedWhereTheApiServerCanDoIt) {
  const std::string switched = set({"adoption.namespaces=true"});
  const std::string elsewhere =
      "template kubegang " + std::string{kChart} + " --kube-version 1.34.4 " + switched;
  const HelmRun refused = run_helm(elsewhere);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.output.find("this API server has no MutatingAdmissionPolicy"),
            std::string::npos)
      << refused.output;
  EXPECT_NE(run_template(switched + set({"adoption.batchJobs=false"})).exit_code, 0);
  for (const json& object : render()) {
    EXPECT_FALSE(object["kind"].get<std::string>().starts_with("Mutating")) << id_of(object);
  }
  const std::string v1 = " --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
  for (const auto& [options, version] :
       {std::pair{switched, "v1beta1"}, std::pair{switched + v1, "v1"}}) {
    const Objects objects = render(options);
    for (const char* name : {"kubegang-adopt-jobs", "kubegang-adopt-cronjobs"}) {
      for (const char* kind : {"MutatingAdmissionPolicy/", "MutatingAdmissionPolicyBinding/"}) {
        EXPECT_EQ(find(objects, std::string{kind} + name)["apiVersion"],
                  std::string{"admissionregistration.k8s.io/"} + version);
      }
    }
  }
}

// 350,000 units a question, 1,000,000 an expression.
// SOURCE: Kubernetes, apiserver/pkg/apis/cel and pkg/cel/library. An expression beyond its budget
// fails at run time, and with "Fail" that refuses every such request.
TEST_F(Chart, NoExpressionAsksTheAuthorizerMoreThanTwice) {
  for (const json& object : render(set({"adoption.pods=true", "adoption.podGroups=true"}))) {
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

}  // namespace
}  // namespace charts
