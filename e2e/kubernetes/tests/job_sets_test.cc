// JobSets with JobSet's own controller and webhooks: each of their Jobs is a gang if it says
// managedBy: kubegang.io/job, and all are one if their pods wait behind our scheduling gate.
#include <algorithm>
#include <fstream>

#include "e2e/kubernetes/tests/gated_pods.h"

namespace kubernetes {
namespace {

// Goal: a JobSet works as its users know it, though each of its Jobs, or all together, are gangs.
// Method: the real controller and small sets.
class JobSets : public GatedPods {
 protected:
  // A JobSet would make its Jobs again, and a batch Job the kubegang Job.
  void TearDown() override {
    if (!ns_.empty()) {
      if (HasFailure())
        std::printf("%s", run_shell(kubectl("get jobsets,jobs -o yaml -n " + ns_)).text.c_str());
      remove(path(), {{"propagationPolicy", "Background"}});
      (void)comes_true([&] { return list("/apis/batch/v1/namespaces/" + ns_ + "/jobs").empty(); },
                       kPatience);
    }
    GatedPods::TearDown();
  }

  // Returns a part of a JobSet: `replicas` Jobs of `pods` pods. `more` is merged over the spec of
  // the Jobs. No retries, unless a test is about them.
  json replicated_job(const std::string& name, int replicas, int pods, const std::string& script,
                      const json& more = {{"backoffLimit", 0}}) const {
    const json job = batch_job(name, pods, script, more);
    return {
        {"name", name},
        {"replicas", replicas},
        {"template",
         {{"metadata", {{"annotations", job["metadata"]["annotations"]}}}, {"spec", job["spec"]}}}};
  }
  // Returns a Job of Kubernetes' own controller; its pods are in a gang of three of the set's name.
  json gated_job(const std::string& set, const std::string& name, int pods,
                 const std::string& script) const {
    return {{"name", name},
            {"template",
             {{"spec",
               {{"completionMode", "Indexed"},
                {"parallelism", pods},
                {"completions", pods},
                {"backoffLimit", 0},
                {"template", pod_template(set, 3, script)}}}}}};
  }
  // Makes a driver that ends when the test says so, and two workers that run as long as it does.
  json one_gang(const std::string& name, const json& more = json::object()) const {
    const std::string until_told = "until [ -e /stamps/end ]; do sleep 0.2; done";
    json object = job_set(
        name, {gated_job(name, "driver", 1, until_told), gated_job(name, "workers", 2, "")},
        {{"successPolicy", {{"operator", "All"}, {"targetReplicatedJobs", {"driver"}}}}});
    object["spec"].merge_patch(more);
    return object;
  }
  void tell_driver() { std::ofstream{stamps_in_ + "/end"} << ""; }
  // `more` is merged over the set's spec.
  json job_set(const std::string& name, const std::vector<json>& replicated_jobs,
               const json& more = json::object()) const {
    json object{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                {"kind", "JobSet"},
                {"metadata", {{"name", name}, {"namespace", ns_}}},
                {"spec", {{"replicatedJobs", replicated_jobs}}}};
    object["spec"].merge_patch(more);
    return object;
  }
  std::string path(const std::string& name = "") const {
    return "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + ns_ + "/jobsets" +
           (name.empty() ? "" : "/" + name);
  }
  Output wait_for_set(const std::string& name, const std::string& type) {
    return run_shell(
        kubectl("wait --for=condition=" + type + " --timeout=120s -n " + ns_ + " jobset/" + name));
  }
  int restarts(const std::string& name) { return get(path(name))["status"].value("restarts", 0); }
  // Returns "" while the Job is not there, as between two attempts.
  std::string uid(const std::string& job) {
    const json object = get(batch_path(job));
    return object.is_null() ? "" : object["metadata"]["uid"];
  }
  std::string nodes_of(const std::string& job_name) {
    const auto allocation = job(job_name).status.allocation;
    return allocation ? allocation->hostlist : "";
  }
};

// A JobSet makes batch Jobs; each of them is a gang of its own, with the labels and names that
// JobSet gives to pods, and the set is complete when they are.
TEST_F(JobSets, RunEachOfTheirJobsAsAGang) {
  ASSERT_NO_FATAL_FAILURE(apply(job_set("train", {replicated_job("driver", 1, 1, "sleep 4"),
                                                  replicated_job("workers", 2, 2, "sleep 4")})));
  const std::vector<std::string> names{"train-driver-0", "train-workers-0", "train-workers-1"};
  for (const std::string& name : names) {
    ASSERT_NO_FATAL_FAILURE(
        wait_until(name + " has its nodes", [&] { return !nodes_of(name).empty(); }));
    const kube::Job ours = job(name);
    const kube::OwnerReference* owner = kube::controller_of(ours.metadata);
    ASSERT_NE(owner, nullptr);
    EXPECT_EQ(owner->uid, uid(name));
  }
  const auto pods = pods_of("train-workers-1");
  ASSERT_EQ(pods.size(), 2U);
  for (const json& pod : pods) {
    // JobSet writes these into the Job's template; our pods must carry them on.
    EXPECT_EQ(pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"], "1");
    EXPECT_EQ(pod["spec"]["subdomain"], "train");
  }
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
  for (const std::string& name : names) {
    EXPECT_EQ(condition(name, "Complete"), "True: CompletionsReached");
  }
  for (const json& each : get(path("train"))["status"]["replicatedJobsStatus"]) {
    EXPECT_EQ(each["succeeded"], each["name"] == "workers" ? 2 : 1) << each.dump(1);
  }
}

// The names that its headless Service serves to others of the set.
TEST_F(JobSets, GiveTheirPodsNames) {
  ASSERT_NO_FATAL_FAILURE(
      apply(job_set("train", {replicated_job("workers", 2, 1, "exec sleep 1000")})));
  ASSERT_NO_FATAL_FAILURE(wait_until("the pods have their names", [&] {
    return endpoint_names("train") ==
           std::vector<std::string>{"train-workers-0-0", "train-workers-1-0"};
  }));
}

// The failure policy restarts the whole set: all its Jobs are deleted, in the foreground, and made
// again under the same names.
TEST_F(JobSets, StartAnewWhenAJobFails) {
  const std::string fails_once =
      "sleep 2; [ -e /stamps/failed ] && exit 0; touch /stamps/failed; exit 1";
  ASSERT_NO_FATAL_FAILURE(apply(job_set(
      "train",
      {replicated_job("driver", 1, 1, fails_once), replicated_job("workers", 1, 2, "sleep 6")},
      {{"failurePolicy", {{"maxRestarts", 2}}}})));
  ASSERT_NO_FATAL_FAILURE(wait_active("train-workers-0", 2));
  const std::string first = uid("train-workers-0");
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
  EXPECT_EQ(restarts("train"), 1);
  EXPECT_NE(uid("train-workers-0"), first);
  EXPECT_EQ(condition("train-workers-0", "Complete"), "True: CompletionsReached");
}

// One try is all that a Job of this set has.
TEST_F(JobSets, FailWithTheirJobs) {
  ASSERT_NO_FATAL_FAILURE(apply(job_set("train", {replicated_job("workers", 1, 2, "exit 3")})));
  ASSERT_EQ(wait_for_set("train", "Failed").exit_code, 0);
  EXPECT_EQ(condition("train-workers-0", "Failed"), "True: BackoffLimitExceeded");
}

// Suspending a set suspends its Jobs; twice, because the second time pods must go.
TEST_F(JobSets, HaveNoPodsWhileTheyAreSuspended) {
  ASSERT_NO_FATAL_FAILURE(
      apply(job_set("train", {replicated_job("workers", 2, 1, "sleep 5")}, {{"suspend", true}})));
  const std::vector<std::string> names{"train-workers-0", "train-workers-1"};
  const auto suspended = [&] {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return condition(name, "Suspended") == "True: JobSuspended" && pods_of(name).empty();
    });
  };
  ASSERT_NO_FATAL_FAILURE(wait_until("its Jobs are suspended", suspended));
  ASSERT_EQ(wait_for_set("train", "Suspended").exit_code, 0);
  patch(path("train"), {{"spec", {{"suspend", false}}}});
  for (const std::string& name : names) ASSERT_NO_FATAL_FAILURE(wait_active(name, 1));
  patch(path("train"), {{"spec", {{"suspend", true}}}});
  ASSERT_NO_FATAL_FAILURE(wait_until("its Jobs are suspended again", suspended));
  patch(path("train"), {{"spec", {{"suspend", false}}}});
  EXPECT_EQ(wait_for_set("train", "Completed").exit_code, 0);
}

// The manifests of examples/batch-jobs/ as users would apply them.
TEST_F(JobSets, AsInTheExampleRun) {
  ASSERT_NO_FATAL_FAILURE(apply_example("job-set.yaml"));
  EXPECT_EQ(wait_for_set("train", "Completed").exit_code, 0);
}

// The second stage is not made before the first one is complete.
TEST_F(JobSets, AsInTheExampleOfTwoStagesRun) {
  ASSERT_NO_FATAL_FAILURE(apply_example("pipeline.yaml"));
  ASSERT_NO_FATAL_FAILURE(wait_active("pipeline-prepare-0", 1));
  EXPECT_TRUE(get(batch_path("pipeline-train-0")).is_null());
  ASSERT_EQ(wait_for_set("pipeline", "Completed").exit_code, 0);
  EXPECT_GE(status("pipeline-train-0")["startTime"].get<std::string>(),
            status("pipeline-prepare-0")["completionTime"].get<std::string>());
}

// The pods of a driver and of its workers are made by two Jobs of Kubernetes' own controller. All
// three are one gang, which takes turns with a kubegang job. The driver's end is the set's success;
// JobSet then deletes the workers, and their gang is complete.
TEST_F(JobSets, TakeTurnsAsOneGang) {
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(apply(one_gang("train")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("train").is_null(); }));
  // One kubegang Job for the pods of both.
  EXPECT_EQ(job_of("train")["spec"]["adopted"].size(), 3U) << "the driver is one of them";
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("train")));
  std::vector<std::string> of_workers;
  for (const json& pod : pods_of("train-workers-0")) of_workers.push_back(pod["spec"]["nodeName"]);
  ASSERT_EQ(of_workers.size(), 2U);
  // Stamps have the names of their pods, which are named after their Job.
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train-workers-0", "other"}, of_workers));
  tell_driver();
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Completed"));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("its workers are deleted", [&] { return pods_of("train-workers-0").empty(); }));
}

// JobSet deletes all child Jobs and makes them again. Their pods are another gang under the same
// label: it is queued when the last pod of the first one is gone.
TEST_F(JobSets, StartAnewAsOneGang) {
  const std::string fails_once =
      "sleep 2; [ -e /stamps/failed ] && exit 0; touch /stamps/failed; exit 1";
  ASSERT_NO_FATAL_FAILURE(apply(job_set("train",
                                        {gated_job("train", "driver", 1, fails_once),
                                         gated_job("train", "workers", 2, "sleep 6")},
                                        {{"failurePolicy", {{"maxRestarts", 2}}}})));
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Running"));
  const std::string first = name_of_job("train");
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
  EXPECT_EQ(restarts("train"), 1);
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Completed"));
  EXPECT_NE(name_of_job("train"), first);
}

// Kubegang ends the pods, their Jobs fail, and a set that may not restart fails with them.
TEST_F(JobSets, FailWhenTheirOneGangIsCancelled) {
  ASSERT_NO_FATAL_FAILURE(apply(one_gang("train")));
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Running"));
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("train")));
  const Output cancelled = run_shell(kubectl_gang("cancel -n " + ns_ + " " + name_of_job("train")));
  ASSERT_EQ(cancelled.exit_code, 0) << cancelled.text;
  ASSERT_EQ(wait_for_set("train", "Failed").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Cancelled"));
}

// The pods of all its Jobs go, and the gang's Job with them; other pods queue again.
TEST_F(JobSets, HaveNoPodsOfTheirOneGangWhileTheyAreSuspended) {
  ASSERT_NO_FATAL_FAILURE(apply(one_gang("train")));
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Running"));
  const std::string first = name_of_job("train");
  patch(path("train"), {{"spec", {{"suspend", true}}}});
  ASSERT_EQ(wait_for_set("train", "Suspended").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "its gang is gone", [&] { return list(all_pods()).empty() && job_of("train").is_null(); }));
  patch(path("train"), {{"spec", {{"suspend", false}}}});
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Running"));
  EXPECT_NE(name_of_job("train"), first);
  tell_driver();
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
}

// As above, with the gate.
TEST_F(JobSets, AsInTheExampleOfOneGangRun) {
  ASSERT_NO_FATAL_FAILURE(apply_example("job-set-one-gang.yaml"));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("train").is_null(); }));
  EXPECT_EQ(job_of("train")["spec"]["adopted"].size(), 3U);
  ASSERT_EQ(wait_for_set("train", "Completed").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("train", "Completed"));
}

}  // namespace
}  // namespace kubernetes
