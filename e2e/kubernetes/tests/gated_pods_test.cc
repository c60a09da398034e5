// Pods that others create, behind the scheduling gate kubegang.io/gang, with the real
// kube-scheduler, kubelets, garbage collector and admission policies.
#include <algorithm>
#include <fstream>

#include "e2e/kubernetes/tests/batch_jobs.h"

namespace kubernetes {
namespace {

class GatedPods : public BatchJobs {
 protected:
  void TearDown() override {
    if (HasFailure()) {
      std::printf("%s", run_shell(kubectl("get pods -o yaml -n " + ns_)).text.c_str());
    }
    if (!ns_.empty()) remove(all_pods());  // else nothing deletes them
    BatchJobs::TearDown();
  }
  std::string all_pods() const { return "/api/v1/namespaces/" + ns_ + "/pods"; }

  // For a gang of as many nodes as pods. `script` empty: the probe.
  json pod_template(const std::string& gang, int pods, const std::string& script) const {
    JobOptions options{.name = gang};
    if (!script.empty()) options.command = {"sh", "-c", script};
    json spec = pod_spec_of(options);
    spec["restartPolicy"] = "Never";
    spec["terminationGracePeriodSeconds"] = 1;
    spec["schedulingGates"] = json::array({{{"name", "kubegang.io/gang"}}});
    spec["containers"][0]["resources"] = {{"requests", {{"cpu", "1m"}, {"memory", "32Mi"}}},
                                          {"limits", {{"cpu", "1"}, {"memory", "32Mi"}}}};
    return {{"metadata",
             {{"labels", {{"kubegang.io/job-name", gang}}},
              {"annotations",
               {{"kubegang.io/partition", ns_},
                {"kubegang.io/pods", std::to_string(pods)},
                {"kubegang.io/nodes", std::to_string(pods)}}}}},
            {"spec", spec}};
  }
  // Called GANG-pods-0, ….
  json pod(const std::string& gang, int index, int pods, const std::string& script) const {
    json object = pod_template(gang, pods, script);
    object["apiVersion"] = "v1";
    object["kind"] = "Pod";
    object["metadata"]["name"] = gang + "-pods-" + std::to_string(index);
    object["metadata"]["namespace"] = ns_;
    return object;
  }
  void create_gang(const std::string& gang, int pods, const std::string& script) {
    for (int i = 0; i < pods; ++i) {
      ASSERT_NO_FATAL_FAILURE(apply(pod(gang, i, pods, script)));
    }
  }
  json pod_object(const std::string& gang, int index) {
    return get("/api/v1/namespaces/" + ns_ + "/pods/" + gang + "-pods-" + std::to_string(index));
  }
  // The gang's Job; null if there is none.
  json job_of(const std::string& gang) {
    const auto found = list("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ +
                            "/jobs?labelSelector=kubegang.io/job-name=" + gang);
    EXPECT_LE(found.size(), 1U);
    return found.empty() ? json() : found.front();
  }
  std::string name_of_job(const std::string& gang) {
    const json job = job_of(gang);
    return job.is_null() ? "" : job["metadata"]["name"].get<std::string>();
  }
  void wait_gang(const std::string& gang, const std::string& state) {
    wait_until(gang + " is " + state, [&] {
      const std::string name = name_of_job(gang);
      return !name.empty() && this->state(name) == state;
    });
  }
};

TEST_F(GatedPods, TakeTurnsWithAGangOfOurs) {
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other"}));
  for (int i : {0, 1}) {
    ASSERT_NO_FATAL_FAILURE(apply(pod("train", i, 3, "")));
  }
  ASSERT_NO_FATAL_FAILURE(wait_until("a pod says what it waits for", [&] {
    const json conditions = pod_object("train", 0)["status"].value("conditions", json::array());
    return std::any_of(conditions.begin(), conditions.end(), [](const json& one) {
      return one["type"] == "kubegang.io/Waiting" && one["reason"] == "WaitingForPods";
    });
  }));
  ASSERT_NO_FATAL_FAILURE(apply(pod("train", 2, 3, "")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("train").is_null(); }));
  const std::string job = name_of_job("train");
  ASSERT_NO_FATAL_FAILURE(wait_ready(job));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  EXPECT_NE(run_shell(kubectl_gang("queue -n " + ns_)).text.find(job), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods say no more that they wait", [&] {
    return pod_object("train", 0).dump().find("kubegang.io/Waiting") == std::string::npos;
  }));
  remove(all_pods());
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job goes with its pods", [&] { return job_of("train").is_null(); }));
}

TEST_F(GatedPods, EndTheirJob) {
  ASSERT_NO_FATAL_FAILURE(create_gang("train", 2, "echo hello; sleep 3"));
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Completed"));
  for (int i : {0, 1}) {
    const json done = pod_object("train", i);
    EXPECT_EQ(done["status"]["phase"], "Succeeded");
    EXPECT_EQ(done["spec"]["tolerations"].back()["key"], "kubegang.io/managed");
  }
  EXPECT_NE(run_shell(kubectl("logs -n " + ns_ + " train-pods-0")).text.find("hello"),
            std::string::npos);
}

TEST_F(GatedPods, OfACancelledJobFailAndStay) {
  ASSERT_NO_FATAL_FAILURE(create_gang("train", 2, "exec sleep 1000"));
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Running"));
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("train")));
  const Output cancelled = run_shell(kubectl_gang("cancel -n " + ns_ + " " + name_of_job("train")));
  ASSERT_EQ(cancelled.exit_code, 0) << cancelled.text;
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Cancelled"));
  for (int i : {0, 1}) {
    const json ended = pod_object("train", i);
    EXPECT_EQ(ended["status"]["phase"], "Failed");
    EXPECT_EQ(ended["status"]["reason"], "DeadlineExceeded");
  }
}

TEST_F(GatedPods, CannotBeGivenToAJobByTheirAuthor) {
  json forged = pod("train", 0, 1, "");
  forged["metadata"]["labels"]["kubegang.io/job-uid"] = "11111111-2222-3333-4444-555555555555";
  const auto refused = call(kube::Method::kPost, "/api/v1/namespaces/" + ns_ + "/pods", forged);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("only the kubegang operator"), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(apply(pod("late", 0, 2, "")));
  const auto changed = call(kube::Method::kPatch, "/api/v1/namespaces/" + ns_ + "/pods/late-pods-0",
                            {{"metadata", {{"annotations", {{"kubegang.io/pods", "1"}}}}}});
  ASSERT_FALSE(changed.ok());
  EXPECT_NE(changed.error().message.find("cannot change"), std::string::npos);
}

// As docs/foreign-jobs.md tells users who give kubegang up.
TEST_F(GatedPods, AreReleasedByTheCommandOfTheDocuments) {
  std::ifstream document{KUBEGANG_SOURCE_DIR "/docs/foreign-jobs.md"};
  std::string command;
  for (std::string line; std::getline(document, line);) {
    const bool begins = line.find("kubectl get pods -A -l kubegang.io/job-name") != line.npos;
    if (begins || !command.empty()) command += line + "\n";
    if (!command.empty() && line.find("done") != line.npos) break;
  }
  ASSERT_FALSE(command.empty());
  json late = pod("late", 0, 2, "sleep 1");
  late["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node(1)}};
  ASSERT_NO_FATAL_FAILURE(apply(late));
  const std::string all = "get pods -A";
  command.replace(command.find(all), all.size(), "get pods -n " + ns_);  // others test beside us
  const Output released = run_shell("kubectl() { command " + kubectl("\"$@\"") + "; }\n" + command);
  ASSERT_EQ(released.exit_code, 0) << released.text;
  EXPECT_NO_FATAL_FAILURE(wait_until(
      "it has run", [&] { return pod_object("late", 0)["status"]["phase"] == "Succeeded"; }));
}

}  // namespace
}  // namespace kubernetes
