// The life of Jobs of the batch group, and of those of CronJobs.
#include "e2e/kubernetes/tests/batch_jobs.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "e2e/devcluster/apply.h"

namespace kubernetes {
namespace {

// The status is what Kubernetes' own controller would write, so that kubectl and others can tell no
// difference: counters, indexes, times, names of pods, and logs by job.
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
  // kubectl finds the pods by the Job's own selector.
  EXPECT_NE(run_shell(kubectl("logs -n " + ns_ + " job/train")).text.find("index "),
            std::string::npos);
}

// Batch Jobs are gangs like any other; their frozen pods still count as active.
TEST_F(BatchJobs, TakeTurnsWithAGangOfOurs) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 3, "")));
  ASSERT_NO_FATAL_FAILURE(wait_ready("train"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  EXPECT_EQ(count("train", "active"), 3) << "frozen pods are active";
  remove(batch_path("train"), {{"propagationPolicy", "Background"}});  // it would remake its Job
}

// Where a user of batch Jobs looks: a condition of the Job, and `explain job/NAME`.
TEST_F(BatchJobs, SayWhyTheyWait) {
  json alone = batch_job("train", 3, "sleep 1000");
  ASSERT_NO_FATAL_FAILURE(make_lane_partition(
      ns_ + "-alone", {{"overSubscribe", {{"policy", "Exclusive"}, {"maxShare", nullptr}}}}));
  // It takes nodes that the batch Job needs, for as long as it runs.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "before", .partition = ns_ + "-alone"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("before"));
  alone["metadata"]["annotations"]["kubegang.io/partition"] = ns_ + "-alone";
  ASSERT_NO_FATAL_FAILURE(apply(alone));
  // The condition is written by us, under our own name: no condition of Kubernetes means that a Job
  // waits.
  ASSERT_NO_FATAL_FAILURE(wait_until("it says why it waits", [&] {
    return condition("train", "kubegang.io/Waiting").starts_with("True: ");
  }));
  const Output told = run_shell(kubectl_gang("explain -n " + ns_ + " job/train"));
  EXPECT_NE(told.text.find("(of job.batch/train)"), std::string::npos) << told.text;
  // A batch Job is canceled by our plugin like any other job, and then is Failed for good.
  EXPECT_EQ(run_shell(kubectl_gang("cancel -n " + ns_ + " job/train")).exit_code, 0);
  ASSERT_EQ(wait_for("train", "Failed").exit_code, 0);
  EXPECT_EQ(condition("train", "Failed"), "True: kubegang.io/Cancelled");
  remove(job_path("before"));
  remove("/apis/kubegang.io/v1alpha1/partitions/" + ns_ + "-alone");
}

// An attempt is a whole gang: one retry means two attempts, each with failed pods.
TEST_F(BatchJobs, FailAfterTheirBackoffLimit) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("broken", 2, "sleep 1; exit 3", {{"backoffLimit", 1}})));
  ASSERT_EQ(wait_for("broken", "Failed").exit_code, 0) << status("broken").dump(1);
  EXPECT_EQ(condition("broken", "Failed"), "True: BackoffLimitExceeded");
  EXPECT_EQ(count("broken", "failed"), 2);
  EXPECT_EQ(count("broken", "active"), 0);
}

// Only time in which the gang ran counts; alone on its nodes it runs from its start on.
TEST_F(BatchJobs, FailAtTheirDeadline) {
  ASSERT_NO_FATAL_FAILURE(
      apply(batch_job("late", 2, "exec sleep 1000", {{"activeDeadlineSeconds", 4}})));
  ASSERT_EQ(wait_for("late", "Failed").exit_code, 0) << status("late").dump(1);
  EXPECT_EQ(condition("late", "Failed"), "True: DeadlineExceeded");
}

// Kubernetes' suspend is not kubegang's: the pods go, and the next start begins from nothing.
TEST_F(BatchJobs, HaveNoPodsWhileTheyAreSuspended) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "sleep 5", {{"suspend", true}})));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "it is suspended", [&] { return condition("train", "Suspended") == "True: JobSuspended"; }));
  // There is no kubegang Job: nothing is queued.
  EXPECT_TRUE(get(job_path("train")).is_null());
  patch(batch_path("train"), {{"spec", {{"suspend", false}}}});
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  // Suspending a Job that runs ends its pods.
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

// Two at a time of five. Running pods count while they run; successful ones keep their logs, and of
// an attempt's two indexes only the failed one is run again by the next.
TEST_F(BatchJobs, FollowOneAnotherUntilEnoughHaveSucceeded) {
  // Index 3 fails once: the mark outlives the pod, so the second try finds it. It fails a second
  // after index 2 has succeeded, since the end of the gang takes the pod of a member that is just
  // succeeding. With five indexes and two places the gang always has a member to follow.
  const std::string script =
      "echo part $JOB_COMPLETION_INDEX on $(hostname); sleep 2; "
      "[ $JOB_COMPLETION_INDEX != 3 ] || [ -e /stamps/failed ] || "
      "{ sleep 1; touch /stamps/failed; exit 1; }";
  json sweep = batch_job("sweep", 2, script, {{"completions", 5}});
  json& pod = sweep["spec"]["template"]["spec"];
  pod["containers"][0]["volumeMounts"] = {{{"name", "stamps"}, {"mountPath", "/stamps"}}};
  pod["volumes"] = {{{"name", "stamps"}, {"hostPath", {{"path", stamps_in_}}}}};
  ASSERT_NO_FATAL_FAILURE(apply(sweep));
  ASSERT_NO_FATAL_FAILURE(wait_until("some have succeeded", [&] {
    // parallelism is kept at each moment that is seen.
    EXPECT_LE(count("sweep", "active"), 2);
    return count("sweep", "succeeded") >= 2;
  }));
  EXPECT_EQ(condition("sweep", "Complete"), "");
  ASSERT_EQ(wait_for("sweep", "Complete").exit_code, 0) << status("sweep").dump(1);
  const json done = status("sweep");
  EXPECT_EQ(done["succeeded"], 5);
  EXPECT_EQ(done["completedIndexes"], "0-4");
  EXPECT_EQ(done.value("failed", 0), 1);
  std::map<std::string, int> succeeded;  // by index
  // A pod that has succeeded stays for its log, also when another attempt begins.
  for (const json& each : pods_of("sweep")) {
    if (each["status"]["phase"] != "Succeeded") continue;
    ++succeeded[each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]];
  }
  const std::map<std::string, int> once{{"0", 1}, {"1", 1}, {"2", 1}, {"3", 1}, {"4", 1}};
  EXPECT_EQ(succeeded, once);
  const Output logs =
      run_shell(kubectl("logs -n " + ns_ + " -l batch.kubernetes.io/job-name=sweep --tail=-1"));
  EXPECT_NE(logs.text.find("part 4 on sweep-4"), std::string::npos) << logs.text;
}

// The gang's members change and its turns go on: a place keeps its slot, whichever pod is at it.
TEST_F(BatchJobs, TakeTurnsWhileTheirPodsFollowOneAnother) {
  ASSERT_NO_FATAL_FAILURE(
      apply(batch_job("sweep", 2, "sleep 5", {{"completions", 6}, {"backoffLimit", 0}})));
  ASSERT_NO_FATAL_FAILURE(wait_ready("sweep"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_EQ(wait_for("sweep", "Complete").exit_code, 0) << status("sweep").dump(1);
  EXPECT_EQ(status("sweep").value("failed", 0), 0);
  remove(job_path("other"));
}

// A field that we cannot honor is refused with a sentence instead of being ignored. The Job stays
// as it is, so the user can correct it.
TEST_F(BatchJobs, ThatCannotRunSayWhy) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("queue", 2, "true", {{"backoffLimitPerIndex", 1}})));
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

// The three ways to delete, as `kubectl delete --cascade` has them, with the real garbage
// collector.
// The default of kubectl.
TEST_F(BatchJobs, GoWithTheirPodsInTheBackground) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "exec sleep 1000")));
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  remove(batch_path("train"), {{"propagationPolicy", "Background"}});
  expect_gone("train");
}

// The Job's object must outlive its pods: scripts wait for the object to be gone and then use the
// nodes.
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

// "Orphan" asks that whatever the Job owns lives on, which here is a kubegang Job with its pods.
TEST_F(BatchJobs, GoOnAsJobsOfOursWhenTheyAreOrphaned) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("train", 2, "sleep 8")));
  ASSERT_NO_FATAL_FAILURE(wait_active("train", 2));
  remove(batch_path("train"), {{"propagationPolicy", "Orphan"}});
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job is gone", [&] { return get(batch_path("train")).is_null(); }));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
}

// Kubernetes' TTL controller deletes Jobs whose status says when they ended, so it must be able to
// read kubegang's.
TEST_F(BatchJobs, AreDeletedAfterTheirTimeToLive) {
  ASSERT_NO_FATAL_FAILURE(apply(batch_job("short", 2, "true", {{"ttlSecondsAfterFinished", 1}})));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("it is gone", [&] { return get(batch_path("short")).is_null(); }));
  expect_gone("short");
}

// The CronJob keeps none of its two Jobs: its controller has seen them end.
TEST_F(BatchJobs, OfACronJobRunAndGo) {
  // A CronJob's template has neither a name nor a namespace.
  json job = batch_job("unused", 2, "sleep 1");
  job["metadata"].erase("name");
  job["metadata"].erase("namespace");
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "batch/v1"},
             {"kind", "CronJob"},
             {"metadata", {{"name", "minutely"}, {"namespace", ns_}}},
             {"spec",
              {{"schedule", "* * * * *"},
               // The next Job waits for this one, which the CronJob controller learns from our
               // status.
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

// The history: it keeps the last one that was successful and the last one that failed.
// Made by hand, as `kubectl create job --from` does, they count like those of its schedule.
TEST_F(BatchJobs, OfACronJobAreKeptAsItsHistory) {
  const std::string script = "case $(hostname) in *bad*) exit 1;; esac";
  json job = batch_job("unused", 1, script, {{"backoffLimit", 0}});
  job["metadata"].erase("name");
  job["metadata"].erase("namespace");
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "batch/v1"},
             {"kind", "CronJob"},
             {"metadata", {{"name", "yearly"}, {"namespace", ns_}}},
             {"spec",
              {{"schedule", "0 0 1 1 *"},
               {"successfulJobsHistoryLimit", 1},
               {"failedJobsHistoryLimit", 1},
               {"jobTemplate", {{"metadata", job["metadata"]}, {"spec", job["spec"]}}}}}}));
  for (const char* name : {"good-1", "bad-1", "good-2", "bad-2"}) {
    const Output made =
        run_shell(kubectl("create job -n " + ns_ + " " + name + " --from=cronjob/yearly"));
    ASSERT_EQ(made.exit_code, 0) << made.text;
    const std::string end = name[0] == 'g' ? "Complete" : "Failed";
    // The next one starts a second later at least: the older one goes, by startTime.
    ASSERT_EQ(wait_for(name, end).exit_code, 0) << status(name).dump(1);
    pass(seconds{1});
  }
  // Sorted, because the list has no order that is promised.
  const auto names = [&] {
    std::vector<std::string> out;
    for (const json& each : list("/apis/batch/v1/namespaces/" + ns_ + "/jobs")) {
      out.push_back(each["metadata"]["name"]);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  ASSERT_NO_FATAL_FAILURE(wait_until("it keeps one of each", [&] {
    return names() == std::vector<std::string>{"bad-2", "good-2"};
  }));
  remove("/apis/batch/v1/namespaces/" + ns_ + "/cronjobs/yearly",
         {{"propagationPolicy", "Background"}});
}

// Jobs that say nothing of kubegang: one of a manifest, one made by hand, and those of a CronJob.
TEST_F(BatchJobs, OfANamespaceThatAdoptsThemAreOurs) {
  const std::string path = "/api/v1/namespaces/" + ns_;
  patch(path, {{"metadata",
                {{"labels", {{"kubegang.io/adopt", "jobs"}}},
                 {"annotations", {{"kubegang.io/partition", ns_}}}}}});
  json plain = batch_job("train", 3, "sleep 3");
  plain["spec"].erase("managedBy");
  plain["metadata"].erase("annotations");
  // The admission policy hears of the label a moment later, so a dry run is tried until it shows.
  ASSERT_NO_FATAL_FAILURE(wait_until("the label is in force", [&] {
    const auto tried =
        call(kube::Method::kPost, "/apis/batch/v1/namespaces/" + ns_ + "/jobs?dryRun=All", plain);
    return tried.ok() && (*tried)["spec"].contains("managedBy") &&
           (*tried)["metadata"].value("annotations", json()).contains("kubegang.io/partition");
  }));
  ASSERT_NO_FATAL_FAILURE(apply(plain));
  const std::string image = std::string{" --image="} + kBusyboxImage;
  for (const std::string& command :
       {"create job by-hand" + image + " -n " + ns_ + " -- true",
        // A CronJob made by hand restarts its pods by default, which a gang refuses.
        "create cronjob nightly" + image + " --restart=Never --schedule='0 3 * * *' -n " + ns_ +
            " -- true",
        "create job of-nightly --from=cronjob/nightly -n " + ns_}) {
    const Output made = run_shell(kubectl(command));
    ASSERT_EQ(made.exit_code, 0) << made.text;
  }
  for (const char* name : {"train", "by-hand", "of-nightly"}) {
    EXPECT_EQ(wait_for(name, "Complete").exit_code, 0) << status(name).dump(1);
    EXPECT_EQ(state(name), "Completed") << "a Job of ours has run it";
  }
}

// The manifests of the documents are applied as they stand, but for image and partition.
TEST_F(BatchJobs, AsInTheExamplesRun) {
  ASSERT_NO_FATAL_FAILURE(apply_example("job.yaml"));
  ASSERT_NO_FATAL_FAILURE(apply_example("cron-job.yaml"));
  ASSERT_NO_FATAL_FAILURE(apply_example("sweep.yaml"));
  const Output made =
      run_shell(kubectl("create job -n " + ns_ + " by-hand --from=cronjob/nightly"));
  ASSERT_EQ(made.exit_code, 0) << made.text;
  EXPECT_EQ(wait_for("train", "Complete").exit_code, 0) << status("train").dump(1);
  EXPECT_EQ(wait_for("by-hand", "Complete").exit_code, 0) << status("by-hand").dump(1);
  EXPECT_EQ(wait_for("sweep", "Complete").exit_code, 0) << status("sweep").dump(1);
}

// Does what Argo would do with the example: makes the Job that stands in it, and reads the fields
// that its two conditions name. Argo itself is not here.
TEST_F(BatchJobs, InAStepOfArgoMeetItsConditions) {
  const auto workflow =
      devcluster::read_manifests(KUBEGANG_SOURCE_DIR "/examples/batch-jobs/argo-workflow.yaml");
  ASSERT_TRUE(workflow.ok()) << workflow.error().message;
  const json& step = workflow->at(0)["spec"]["templates"][0]["resource"];
  const std::string path = stamps_in_ + "/argo-step.yaml";
  std::ofstream{path} << step["manifest"].get<std::string>();
  auto manifests = devcluster::read_manifests(path);
  ASSERT_TRUE(manifests.ok()) << manifests.error().message;
  json job = as_own(manifests->at(0));
  job["metadata"]["namespace"] = ns_;
  ASSERT_NO_FATAL_FAILURE(apply(job));
  const int completions = job["spec"]["completions"];
  EXPECT_EQ(step["successCondition"], "status.succeeded == " + std::to_string(completions));
  ASSERT_EQ(wait_for("train-step", "Complete").exit_code, 0) << status("train-step").dump(1);
  EXPECT_EQ(count("train-step", "succeeded"), completions);
  EXPECT_EQ(count("train-step", "failed"), 0);

  job["metadata"]["name"] = "fails";
  job["spec"]["template"]["spec"]["containers"][0]["command"] = {"false"};
  const int failures_max = job["spec"]["backoffLimit"];
  EXPECT_EQ(step["failureCondition"], "status.failed > " + std::to_string(failures_max));
  ASSERT_NO_FATAL_FAILURE(apply(job));
  ASSERT_EQ(wait_for("fails", "Failed").exit_code, 0) << status("fails").dump(1);
  EXPECT_GT(count("fails", "failed"), failures_max);
  EXPECT_EQ(count("fails", "succeeded"), 0);
}

// A stand-in is called in place of torchrun, and checks what it is given. Names are not resolved in
// this cluster: what its DNS would serve is in the endpoints of the Service.
TEST_F(BatchJobs, GiveTorchrunItsRankAndItsRendezvous) {
  // The stand-in checks that each rank has its own values, and waits until the test has looked at
  // the Service.
  std::ofstream{stamps_in_ + "/torchrun"} << R"sh(
for word in "$@"; do
  case $word in
    --nnodes=*) nodes=${word#*=} ;;
    --node-rank=*) rank=${word#*=} ;;
    --master-addr=*) address=${word#*=} ;;
    --master-port=*) port=${word#*=} ;;
  esac
done
echo "rank $rank of $nodes on $(hostname), meets the others at $address:$port"
[ "$rank" = "$JOB_COMPLETION_INDEX" ] && [ "$nodes" = "$SLURM_NTASKS" ] || exit 1
[ "$(hostname)" = "train-$rank" ] && [ "$address:$port" = train-0.train:29500 ] || exit 2
[ "$rank" != 0 ] || grep -qF "$address" /etc/hosts || exit 3
until [ -e /stamps/go ]; do sleep 0.2; done
)sh";
  // The example's command must be torchrun itself: otherwise this test would show nothing about it.
  const auto with_stand_in = [&](json& object) {
    if (object["kind"] != "Job") return;
    json& pod = object["spec"]["template"]["spec"];
    json& container = pod["containers"][0];
    ASSERT_EQ(container["command"], json::array({"torchrun"}));
    container["command"] = {"sh", "/stamps/torchrun"};
    container["volumeMounts"] = {{{"name", "stamps"}, {"mountPath", "/stamps"}}};
    pod["volumes"] = {{{"name", "stamps"}, {"hostPath", {{"path", stamps_in_}}}}};
  };
  ASSERT_NO_FATAL_FAILURE(apply_example("torchrun.yaml", with_stand_in));
  ASSERT_NO_FATAL_FAILURE(wait_until("the pods have their names", [&] {
    return endpoint_names("train") == std::vector<std::string>{"train-0", "train-1", "train-2"};
  }));
  // Now the members may end.
  std::ofstream{stamps_in_ + "/go"} << "";
  EXPECT_EQ(wait_for("train", "Complete").exit_code, 0) << status("train").dump(1);
  const Output logs =
      run_shell(kubectl("logs -n " + ns_ + " -l batch.kubernetes.io/job-name=train --tail=-1"));
  for (const char* rank : {"0", "1", "2"}) {
    const std::string line = std::string{"rank "} + rank + " of 3 on train-" + rank +
                             ", meets the others at train-0.train:29500";
    EXPECT_NE(logs.text.find(line), std::string::npos) << logs.text;
  }
}

}  // namespace
}  // namespace kubernetes
