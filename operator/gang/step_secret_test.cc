// Tests of what pods of a batch script need to run steps together.
#include "operator/gang/step_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "operator/gang/pod_builder.h"
#include "translation/testing/job_of_spec.h"

namespace control {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const PodLauncher kLauncherOfSteps{.image = "registry/launcher:1",
                                   .port = 7000,
                                   .dns = {.name_servers = {"10.0.0.10"}, .domain = "k8s.example"}};

kube::Job job_on(const std::string& hostlist, int nodes, const json& pod_spec = json::object()) {
  json spec = pod_spec;
  spec["containers"] = json::array({{{"name", "main"}}});
  kube::Job job = job_of_spec({{"resources", {{"nodes", {{"min", nodes}}}}},
                               {"batch", {{"script", "#!/bin/sh\n"}, {"arguments", {"a"}}}},
                               {"template", {{"spec", spec}}}});
  job.status.job_id = 1001;
  job.status.starts = 1;
  job.status.partition = "main";
  job.status.allocation = kube::Allocation{.hostlist = hostlist, .nodes = nodes, .cpus = nodes};
  job.status.allocation->shares = {{.hostlist = hostlist, .cpus = 1, .tasks = 1}};
  return job;
}

base::Result<json> joined_pod(const kube::Job& job, std::size_t index) {
  const auto slots = pod_slots({job.metadata.name, job.metadata.uid, 1}, *job.status.allocation,
                               kube::PodPolicy::kPerNode)
                         .value();
  return build_pod(job, slots[index], gang_layout(slots), {}, kLauncherOfSteps);
}

TEST(StepSecret, OnePodHasNeitherASecretNorAPort) {
  const std::string text = joined_pod(job_on("n1", 1), 0)->dump();
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("--port")));
  EXPECT_THAT(text, Not(HasSubstr("dnsConfig")));
  EXPECT_THAT(text, HasSubstr(R"("hostname":"n1")"));
}

// The API server refuses any other from the operator.
TEST(StepSecret, HasANameThatItsPolicyAllows) {
  std::ifstream file{KUBEGANG_SOURCE_DIR "/charts/kubegang/templates/admission.yaml"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const std::size_t end = text.find("-steps$'");
  ASSERT_NE(end, std::string::npos);
  const std::size_t begin = text.rfind("+ '", end) + 3;
  const std::regex allowed{"sweep" + text.substr(begin, end - begin) + "-steps"};
  EXPECT_TRUE(std::regex_match(step_secret_name({"sweep", "u-1", 1}), allowed));
  EXPECT_TRUE(std::regex_match(step_secret_name({"sweep", "u-1", 1, 100'000}), allowed));
  EXPECT_FALSE(std::regex_match(step_secret_name({"other", "u-1", 1}), allowed));
}

TEST(StepSecret, PodsOfOneStartMountTheSame) {
  const kube::Job job = job_on("n[1-2]", 2);
  const std::string name = step_secret_name({job.metadata.name, job.metadata.uid, 1});
  for (const std::size_t index : {0U, 1U}) {
    const json pod = *joined_pod(job, index);
    const json& spec = pod["spec"];
    const json want{{"name", "kubegang-steps"},
                    {"secret", {{"secretName", name}, {"defaultMode", 0444}}}};
    EXPECT_THAT(spec["volumes"].get<std::vector<json>>(), Contains(want));
    const json mount{
        {"name", "kubegang-steps"}, {"mountPath", "/run/kubegang-steps"}, {"readOnly", true}};
    EXPECT_THAT(spec["containers"][0]["volumeMounts"].get<std::vector<json>>(), Contains(mount));
  }
  EXPECT_NE(name, step_secret_name({job.metadata.name, job.metadata.uid, 2}))
      << "new at each start";
}

// The key stands in the Secret alone: no text of the pods is made from it, or names more of the
// Secret than the volume does.
TEST(StepSecret, ItsKeyIsInNoTextOfThePods) {
  const kube::Job job = job_on("n[1-2]", 2);
  const std::string name = step_secret_name({job.metadata.name, job.metadata.uid, 1});
  for (const std::size_t index : {0U, 1U}) {
    json pod = *joined_pod(job, index);
    EXPECT_EQ(pod, *joined_pod(job, index)) << "nothing random is in it";
    json& spec = pod["spec"];
    EXPECT_EQ(std::erase_if(spec["volumes"].get_ref<json::array_t&>(),
                            [&](const json& volume) { return volume.contains("secret"); }),
              1U);
    EXPECT_THAT(pod.dump(), Not(HasSubstr(name)));
    for (const char* list : {"containers", "initContainers"}) {
      for (const json& container : spec.value(list, json::array())) {
        EXPECT_FALSE(container.contains("envFrom"));
        for (const json& variable : container.value("env", json::array())) {
          EXPECT_FALSE(variable.value("valueFrom", json::object()).contains("secretKeyRef"));
        }
        for (const json& word : container.value("args", json::array())) {
          const std::string text = word;
          EXPECT_TRUE(!text.starts_with("--key") || text == "--key=/run/kubegang-steps/key");
        }
      }
    }
  }
}

TEST(StepSecret, HasItsKeyAndItsOwner) {
  const std::string key = "AAAA";
  const json secret = build_step_secret("team-a", {"load", "uid-1", 3}, key);
  EXPECT_EQ(secret["metadata"]["namespace"], "team-a");
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  EXPECT_EQ(secret["type"], "Opaque");
  EXPECT_EQ(secret["data"], (json{{"key", key}}));
}

TEST(StepSecret, TheOthersFindTheFirst) {
  const kube::Job job = job_on("n[1-2]", 2);
  const json first = *joined_pod(job, 0);
  EXPECT_EQ(first["spec"]["containers"][0]["args"],
            json::array({"batch", "--key=/run/kubegang-steps/key", "--port=7000",
                         "--open-mode=truncate", "--installed", "--", "a"}));
  const json second = *joined_pod(job, 1);
  EXPECT_EQ(second["spec"]["hostname"], "n2");
  EXPECT_EQ(second["spec"]["subdomain"], job.metadata.name);
  const std::string domain = job.metadata.name + "." + job.metadata.ns + ".svc.k8s.example";
  EXPECT_EQ(second["spec"]["containers"][0]["args"],
            json::array({"wait", "--key=/run/kubegang-steps/key", "--port=7000",
                         "--first=n1." + domain + ".", "--ask=_first-%._tcp." + domain + ".",
                         "--asks=30"}));
}

// The names that the others ask for are of ports that the first pod alone has, one for each of 30
// turns of 200 ms: none is asked for again while a name server may keep to a denial.
TEST(StepSecret, TheFirstAloneHasThePortsOfTheService) {
  const kube::Job job = job_on("n[1-2]", 2);
  const kube::Service service = build_service(job, {job.metadata.name, job.metadata.uid, 1});
  ASSERT_EQ(service.spec.ports.size(), 30U);
  const json ports = encode(service)["spec"]["ports"];
  EXPECT_EQ(ports[0], (json{{"name", "first-0"}, {"port", 1}, {"targetPort", "kubegang-first"}}));
  EXPECT_EQ(ports[29]["name"], "first-29");
  EXPECT_EQ((*joined_pod(job, 0))["spec"]["containers"][0]["ports"],
            json::array({{{"name", "kubegang-first"}, {"containerPort", 7000}}}));
  EXPECT_FALSE((*joined_pod(job, 1))["spec"]["containers"][0].contains("ports"));
}

// There the port would be the node's.
TEST(StepSecret, OnTheNetworkOfTheNodeTheOthersAskForTheNameItself) {
  const kube::Job job = job_on("n[1-2]", 2, {{"hostNetwork", true}});
  EXPECT_FALSE((*joined_pod(job, 0))["spec"]["containers"][0].contains("ports"));
  EXPECT_THAT((*joined_pod(job, 1))["spec"]["containers"][0]["args"].dump(),
              Not(HasSubstr("--ask")));
}

// In every pod "n1" is the pod of n1, whatever else has that name in the cluster or outside.
TEST(StepSecret, TheJobsNamesComeFirst) {
  const json pod =
      *joined_pod(job_on("n[1-2]", 2,
                         {{"dnsConfig",
                           {{"nameservers", {"10.0.0.11"}},
                            {"searches", {"example.org"}},
                            {"options", json::array({{{"name", "ndots"}, {"value", "2"}}})}}}}),
                  0);
  EXPECT_EQ(pod["spec"]["dnsPolicy"], "None");
  const json& config = pod["spec"]["dnsConfig"];
  EXPECT_EQ(config["nameservers"], (json{"10.0.0.10", "10.0.0.11"}));
  const std::string domain = job_on("n1", 1).metadata.ns + ".svc.k8s.example";
  EXPECT_EQ(config["searches"][1], domain);
  EXPECT_THAT(config["searches"][0].get<std::string>(), HasSubstr("." + domain));
  EXPECT_EQ(config["searches"].back(), "example.org");
  EXPECT_EQ(config["options"].back()["value"], "2");
}

TEST(StepSecret, NodesWithDotsHaveNamesOfTheirOwn) {
  EXPECT_THAT(host_names({"a.x", "b.x"}), ElementsAre("a", "b"));
  EXPECT_THAT(host_names({"a.x", "a.y"}), ElementsAre("a-x", "a-y"));
  const json pod = *joined_pod(job_on("n[1-2].example.org", 2), 1);
  EXPECT_THAT(pod["spec"]["containers"][0]["env"].dump(),
              testing::AllOf(HasSubstr(R"({"name":"SLURM_JOB_NODELIST","value":"n[1-2]"})"),
                             HasSubstr(R"({"name":"SLURMD_NODENAME","value":"n2"})")));
  EXPECT_EQ(pod["spec"]["nodeName"], "n2.example.org");
}

TEST(StepSecret, NoNamesNoStepsOverPods) {
  kube::Job job = job_on("n[1-2]", 2);
  job.spec.network = kube::JobNetwork::kNone;
  EXPECT_THAT(joined_pod(job, 0).error().message, HasSubstr("spec.network"));
}

TEST(ClusterDns, IsThatOfAPod) {
  const ClusterDns dns = read_cluster_dns(
      "search kubegang-system.svc.k8s.example svc.k8s.example k8s.example lan\n"
      "nameserver 10.96.0.10\nnameserver fd00::a\noptions ndots:5\n");
  EXPECT_THAT(dns.name_servers, ElementsAre("10.96.0.10", "fd00::a"));
  EXPECT_EQ(dns.domain, "k8s.example");
  EXPECT_EQ(read_cluster_dns("search lan\nnameserver 192.168.1.1\n"), ClusterDns{})
      << "of a machine outside of the cluster";
}

}  // namespace
}  // namespace control
