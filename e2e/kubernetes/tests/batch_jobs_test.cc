// Jobs of the batch group that say managedBy: kubegang.io/job, beside the real controllers of
// Kubernetes: its Job controller, garbage collector, TTL controller and CronJob controller, and the
// real kubectl.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class BatchJobs : public Cluster {
 protected:
  // On as many nodes as it has pods. `command` empty: the probe.
  json batch_job(const std::string& name, int pods, const std::string& script,
                 const json& more = nullptr) const {
    JobOptions options{.name = name};
    if (!script.empty()) options.command = {"sh", "-c", script};
    json pod_template = job_object(options)["spec"]["template"];
    pod_template["spec"]["restartPolicy"] = "Never";
    json object{{"apiVersion", "batch/v1"},
                {"kind", "Job"},
                {"metadata",
                 {{"name", name},
                  {"namespace", ns_},
                  {"annotations",
                   {{"kubegang.io/partition", ns_}, {"kubegang.io/nodes", std::to_string(pods)}}}}},
                {"spec",
                 {{"managedBy", "kubegang.io/job"},
                  {"completionMode", "Indexed"},
                  {"parallelism", pods},
                  {"completions", pods},
                  {"template", pod_template}}}};
    if (more.is_object()) object["spec"].merge_patch(more);
    return object;
  }
  std::string batch_path(const std::string& name) const {
    return "/apis/batch/v1/namespaces/" + ns_ + "/jobs/" + name;
  }
  json status(const std::string& name) { return get(batch_path(name)).value("status", json()); }
  // "True: reason", "" when there is none.
  std::string condition(const std::string& name, const std::string& type) {
    for (const json& each : status(name).value("conditions", json::array())) {
      if (each["type"] == type) {
        return each["status"].get<std::string>() + ": " + each.value("reason", "");
      }
    }
    return "";
  }
  std::vector<json> pods_of(const std::string& name) {
    return list("/api/v1/namespaces/" + ns_ +
                "/pods?labelSelector=batch.kubernetes.io/job-name=" + name);
  }
  int count(const std::string& name, const char* counter) { return status(name).value(counter, 0); }
  void wait_active(const std::string& name, int pods) {
    wait_until(name + " has " + std::to_string(pods) + " active pods",
               [&] { return count(name, "active") == pods; });
  }
  // The real kubectl's view of the end.
  Output wait_for(const std::string& name, const std::string& type) {
    return run_shell(
        kubectl("wait --for=condition=" + type + " --timeout=120s -n " + ns_ + " job/" + name));
  }
  void expect_gone(const std::string& name) {
    wait_until("the job of " + name + " and its pods are gone",
               [&] { return get(job_path(name)).is_null() && pods_of(name).empty(); });
  }
};

TEST_F(BatchJobs, RunAsAGangUntilTheyAreComplete) {
  ASSERT_NO_FATAL_FAILURE(
      apply(batch_job("train", 3, "echo index $JOB_COMPLETION_INDEX on $(hostname); sleep 3")));
  ASSERT_EQ(wait_for("train", "Complete").exit_code, 0) << status("train").dump(1);
  const json done = status("train");
  EXPECT_EQ(done["succeeded"], 3);
  EXPECT_EQ(done["completedIndexes"], "0-2");
  EXPECT_EQ(done.value("active", 0), 0);
  EXPECT_TRUE(done.contains("startTime"));
  EXPECT_TRUE(done.contains("completionTime"));
  EXPECT_EQ(pods_of("train").size(), 3U);
  const Output logs =
      run_shell(kubectl("logs -n " + ns_ + " -l batch.kubernetes.io/job-name=train --tail=-1"));
  for (const char* line : {"index 0 on train-0", "index 1 on train-1", "index 2 on train-2"}) {
    EXPECT_NE(logs.text.find(line), std::string::npos) << logs.text;
  }
  EXPECT_NE(run_shell(kubectl("logs -n " + ns_ + " job/train")).text.find("index "),
            std::string::npos);
}

TEST_F(BatchJobs, TakeTurnsWithAGangOfOurs) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 3, "")));
  ASSERT_NO_FATAL_FAILURE(wait_ready("train"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  EXPECT_EQ(count("train", "active"), 3) << "frozen pods are active";
  remove(batch_path("train"), {{"propagationPolicy", "Background"}});  // it would make its Job anew
}

TEST_F(BatchJobs, SayWhyTheyWait) {
  json alone = batch_job("train", 3, "sleep 1000");
  ASSERT_NO_FATAL_FAILURE(make_lane_partition(
      ns_ + "-alone", {{"overSubscribe", {{"policy", "Exclusive"}, {"maxShare", nullptr}}}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "before", .partition = ns_ + "-alone"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("before"));
  alone["metadata"]["annotations"]["kubegang.io/partition"] = ns_ + "-alone";
  ASSERT_NO_FATAL_FAILURE(apply(alone));
  ASSERT_NO_FATAL_FAILURE(wait_until("it says why it waits", [&] {
    return condition("train", "kubegang.io/Waiting").starts_with("True: ");
  }));
  const Output told = run_shell(kubectl_gang("explain -n " + ns_ + " job/train"));
  EXPECT_NE(told.text.find("(of job.batch/train)"), std::string::npos) << told.text;
  EXPECT_EQ(run_shell(kubectl_gang("cancel -n " + ns_ + " job/train")).exit_code, 0);
  ASSERT_EQ(wait_for("train", "Failed").exit_code, 0);
  EXPECT_EQ(condition("train", "Failed"), "True: kubegang.io/Cancelled");
  remove(job_path("before"));
  remove("/apis/kubegang.io/v1alpha1/partitions/" + ns_ + "-alone");
}

TEST_F(BatchJobs, FailAfterTheirBackoffLimit) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("broken", 2, "sleep 1; exit 3", {{"backoffLimit", 1}})));
  ASSERT_EQ(wait_for("broken", "Failed").exit_code, 0) << status("broken").dump(1);
  EXPECT_EQ(condition("broken", "Failed"), "True: BackoffLimitExceeded");
  EXPECT_EQ(count("broken", "failed"), 2);
  EXPECT_EQ(count("broken", "active"), 0);
}

TEST_F(BatchJobs, FailAtTheirDeadline) {
  ASSERT_NO_FATAL_FAILURE(
      apply(batch_job("late", 2, "exec sleep 1000", {{"activeDeadlineSeconds", 4}})));
  ASSERT_EQ(wait_for("late", "Failed").exit_code, 0) << status("late").dump(1);
  EXPECT_EQ(condition("late", "Failed"), "True: DeadlineExceeded");
}

TEST_F(BatchJobs, HaveNoPodsWhileTheyAreSuspended) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "sleep 5", {{"suspend", true}})));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "it is suspended", [&] { return condition("train", "Suspended") == "True: JobSuspended"; }));
  EXPECT_TRUE(get(job_path("train")).is_null());
  patch(batch_path("train"), {{"spec", {{"suspend", false}}}});
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  patch(batch_path("train"), {{"spec", {{"suspend", true}}}});
  ASSERT_NO_FATAL_FAILURE(wait_until("it is suspended again", [&] {
    return condition("train", "Suspended") == "True: JobSuspended";
  }));
  EXPECT_FALSE(status("train").contains("startTime"));
  for (const json& pod : pods_of("train")) {  // the garbage collector has not come by
    EXPECT_NE(pod["status"]["phase"], "Running") << pod.dump(1);
  }
  ASSERT_NO_FATAL_FAILURE(
      wait_until("its pods are gone", [&] { return pods_of("train").empty(); }));
  patch(batch_path("train"), {{"spec", {{"suspend", false}}}});
  ASSERT_EQ(wait_for("train", "Complete").exit_code, 0) << status("train").dump(1);
}

TEST_F(BatchJobs, ThatCannotRunSayWhy) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("queue", 2, "true", {{"completions", 5}})));
  ASSERT_NO_FATAL_FAILURE(wait_until("it says what is wrong", [&] {
    return condition("queue", "kubegang.io/Accepted") == "False: NotSupported";
  }));
  EXPECT_EQ(pods_of("queue").size(), 0U);
  ASSERT_NO_FATAL_FAILURE(wait_until("there is an event", [&] {
    const auto events =
        list("/api/v1/namespaces/" + ns_ + "/events?fieldSelector=involvedObject.name=queue");
    return std::any_of(events.begin(), events.end(),
                       [](const json& event) { return event["reason"] == "Refused"; });
  }));
}

TEST_F(BatchJobs, GoWithTheirPodsInTheBackground) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "exec sleep 1000")));
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  remove(batch_path("train"), {{"propagationPolicy", "Background"}});
  expect_gone("train");
}

TEST_F(BatchJobs, GoAfterTheirPodsInTheForeground) {
  // A shell as process 1 ignores SIGTERM: the pods end when their grace is over.
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "sleep 1000; true")));
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  remove(batch_path("train"), {{"propagationPolicy", "Foreground"}});
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job is gone", [&] { return get(batch_path("train")).is_null(); }));
  EXPECT_EQ(pods_of("train").size(), 0U) << "it waited for them";
  EXPECT_TRUE(get(job_path("train")).is_null());
}

TEST_F(BatchJobs, GoOnAsJobsOfOursWhenTheyAreOrphaned) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "sleep 8")));
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  remove(batch_path("train"), {{"propagationPolicy", "Orphan"}});
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job is gone", [&] { return get(batch_path("train")).is_null(); }));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
}

TEST_F(BatchJobs, AreDeletedAfterTheirTimeToLive) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("short", 2, "true", {{"ttlSecondsAfterFinished", 1}})));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("it is gone", [&] { return get(batch_path("short")).is_null(); }));
  expect_gone("short");
}

// Of the CronJob's two Jobs it keeps none: its controller has seen them end.
TEST_F(BatchJobs, OfACronJobRunAndGo) {
  json job = batch_job("unused", 2, "sleep 1");
  job["metadata"].erase("name");
  job["metadata"].erase("namespace");
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "batch/v1"},
             {"kind", "CronJob"},
             {"metadata", {{"name", "minutely"}, {"namespace", ns_}}},
             {"spec",
              {{"schedule", "* * * * *"},
               {"concurrencyPolicy", "Forbid"},
               {"successfulJobsHistoryLimit", 0},
               {"jobTemplate", {{"metadata", job["metadata"]}, {"spec", job["spec"]}}}}}}));
  const std::string path = "/apis/batch/v1/namespaces/" + ns_ + "/cronjobs/minutely";
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "one of its Jobs was successful",
      [&] { return get(path).value("status", json()).contains("lastSuccessfulTime"); },
      std::chrono::minutes{3}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it was deleted", [&] {
    return list("/apis/batch/v1/namespaces/" + ns_ + "/jobs").empty();
  }));
  remove(path, {{"propagationPolicy", "Background"}});
}

TEST_F(BatchJobs, AsInTheExamplesRun) {
  const auto example = [&](const std::string& file) {
    std::ifstream in{KUBEGANG_SOURCE_DIR "/examples/batch-jobs/" + file};
    std::stringstream text;
    text << in.rdbuf();
    std::string manifest = text.str();
    const auto replace = [&](const std::string& what, const std::string& by) {
      const std::size_t at = manifest.find(what);
      ASSERT_NE(at, std::string::npos) << file << ": " << what;
      manifest.replace(at, what.size(), by);
    };
    replace("image: busybox", std::string{"image: "} + kBusyboxImage);
    replace("kubegang.io/partition: batch", "kubegang.io/partition: " + ns_);
    const std::string path = stamps_in_ + "/" + file;
    std::ofstream{path} << manifest;
    return path;
  };
  const auto apply_file = [&](const std::string& path) {
    const Output applied = run_shell(kubectl("apply -n " + ns_ + " -f " + path));
    ASSERT_EQ(applied.exit_code, 0) << applied.text;
  };
  ASSERT_NO_FATAL_FAILURE(apply_file(example("job.yaml")));
  ASSERT_NO_FATAL_FAILURE(apply_file(example("cron-job.yaml")));
  const Output made =
      run_shell(kubectl("create job -n " + ns_ + " by-hand --from=cronjob/nightly"));
  ASSERT_EQ(made.exit_code, 0) << made.text;
  EXPECT_EQ(wait_for("train", "Complete").exit_code, 0) << status("train").dump(1);
  EXPECT_EQ(wait_for("by-hand", "Complete").exit_code, 0) << status("by-hand").dump(1);
}

}  // namespace
}  // namespace kubernetes
