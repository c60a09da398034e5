// Our own objects, the chart's and the examples, against our own schemas.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/account.h"
#include "api/job.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "charts/chart_fixture.h"
#include "kube/api/batch_job.h"
#include "kube/api/pod.h"
#include "kube/api/pod_group.h"
#include "kube/client.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/api_server/yaml_json.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"

namespace charts {
namespace {

// Fed to the tests' API server, which checks with the schemas in crds/ as a real one does.
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

// Returns the batch Job, or those that a CronJob, a JobSet or a step of an Argo workflow makes.
std::vector<json> batch_jobs(const json& object) {
  if (object["kind"] == "Job") return {object};
  std::vector<json> jobs;
  if (object["kind"] == "Workflow") {
    for (const json& each : object["spec"]["templates"]) {
      const auto manifests =
          devcluster::yaml_documents(each["resource"]["manifest"].get<std::string>());
      EXPECT_TRUE(manifests.ok()) << manifests.error().message;
      for (const std::string& manifest : *manifests) jobs.push_back(json::parse(manifest));
    }
  }
  if (object["kind"] == "CronJob") jobs.push_back(object["spec"]["jobTemplate"]);
  if (object["kind"] == "JobSet") {
    for (const json& each : object["spec"]["replicatedJobs"]) jobs.push_back(each["template"]);
  }
  for (json& job : jobs) {
    // Templates bear neither kind nor name; the API server needs both.
    job["apiVersion"] = "batch/v1";
    job["kind"] = "Job";
    job["metadata"]["name"] = object["metadata"]["name"];
  }
  return jobs;
}

// Returns true for kinds of Kubernetes' own about which this project has nothing to say.
bool is_of_kubernetes(const json& object) {
  constexpr std::array kKinds = {"Service", "ServiceAccount", "Role", "RoleBinding"};
  return std::ranges::any_of(kKinds, [&](const char* kind) { return object["kind"] == kind; });
}

// Our server knows none of Kueue's kinds; kueue_test.cc applies them to a real one.
bool is_of_kueue(const json& object) {
  return object["apiVersion"].get<std::string>().starts_with("kueue.x-k8s.io/");
}

// With a value of a user's: the chart hands the spec on as it is, so a default that the schema
// refuses would fail at each installation.
TEST_F(ChartObjects, SchedulerConfigIsValid) {
  const auto created = client_.create_json<kube::SchedulerConfig>(
      "", find(render(set({"schedulerConfig.spec.timeSlice=5s"})), "SchedulerConfig/default"));
  EXPECT_TRUE(created.ok()) << created.error().message;
}

// Users begin with these files. Each kind that may occur is named, so that a new one is not passed
// over. cluster.yaml is of the tool kind and no object of a cluster.
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
      } else if (object["kind"] == "JobSet" || object["kind"] == "Workflow" ||
                 object["apiVersion"] == "batch/v1") {
        for (const json& job : batch_jobs(object)) {
          check(client_.create_json<kube::BatchJob>("default", job, {.dry_run = true}));
        }
        // Our server knows no MPIJob; its pods are checked instead, made complete as the MPI
        // operator does.
      } else if (object["kind"] == "MPIJob") {
        for (const auto& [role, replicas] : object["spec"]["mpiReplicaSpecs"].items()) {
          json pod = replicas["template"];
          pod["apiVersion"] = "v1";
          pod["kind"] = "Pod";
          pod["metadata"]["name"] = "pod";
          pod["spec"]["restartPolicy"] = replicas["restartPolicy"];
          check(client_.create_json<kube::Pod>("default", pod, {.dry_run = true}));
        }
      } else if (object["kind"] == "Job") {
        check(client_.create_json<kube::Job>("default", object, {.dry_run = true}));
      } else if (object["kind"] == "SchedulerConfig") {
        check(client_.create_json<kube::SchedulerConfig>("", object, {.dry_run = true}));
      } else if (object["kind"] == "Pod") {
        json pod = object;
        pod["metadata"].erase("namespace");
        check(client_.create_json<kube::Pod>("default", pod, {.dry_run = true}));
      } else if (object["kind"] == "PodGroup") {  // the coscheduling plugin's
        EXPECT_TRUE(kube::decode<kube::PodGroup>(object).ok()) << file;
      } else if (object["kind"] == "QOS") {
        check(client_.create_json<kube::Qos>("", object, {.dry_run = true}));
      } else if (object["kind"] == "Account") {
        check(client_.create_json<kube::Account>("", object, {.dry_run = true}));
      } else if (!is_of_kubernetes(object) && !is_of_kueue(object)) {
        ADD_FAILURE() << file << ": unknown kind " << object["kind"];
      }
    }
  }
  // The folder was found at all.
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace charts
