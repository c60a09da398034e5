// Jobs of the batch group that kubegang runs and that Kueue, with its own controller and webhooks,
// lets in: quota there, turns here.
#include <fstream>

#include "e2e/kubernetes/tests/batch_jobs.h"

namespace kubernetes {
namespace {

constexpr const char* kKueueApi = "/apis/kueue.x-k8s.io/v1beta2/";

// Goal: a cluster that shares quota by Kueue can have our gangs beside it. Kueue decides which Jobs
// may queue with us, by suspending the others; kubegang decides which of them run, and when.
class Kueue : public BatchJobs {
 protected:
  // The namespace is one of those that Kueue manages, and has a queue of its own name.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(BatchJobs::SetUp());
    patch("/api/v1/namespaces/" + ns_, {{"metadata", {{"labels", {{"kueue", "manages"}}}}}});
    // Kueue's webhook sees the namespace's label a moment later. It suspends each new Job, also in
    // a dry run.
    ASSERT_NO_FATAL_FAILURE(wait_until("Kueue's webhooks are asked", [&] {
      const auto made =
          call(kube::Method::kPost, "/apis/batch/v1/namespaces/" + ns_ + "/jobs?dryRun=All",
               in_queue(batch_job("probe", 1, "true")));
      return made.ok() && (*made)["spec"].value("suspend", false);
    }));
  }
  void TearDown() override {
    if (!ns_.empty()) {
      if (HasFailure()) {
        std::printf("%s", run_shell(kubectl("get workloads,jobs -o yaml -n " + ns_)).text.c_str());
      }
      const std::string jobs = "/apis/batch/v1/namespaces/" + ns_ + "/jobs";
      remove(jobs, {{"propagationPolicy", "Background"}});
      (void)comes_true([&] { return list(jobs).empty(); }, kPatience);
      for (const std::string& path :
           {cluster_path("workloadpriorityclasses", "low"),
            cluster_path("workloadpriorityclasses", "high"), local_queue_path(),
            cluster_path("clusterqueues"), cluster_path("resourceflavors")}) {
        (void)call(kube::Method::kDelete, path);  // not all tests make all of them
      }
    }
    BatchJobs::TearDown();
  }

  // Objects of the test's own name; priority classes are called NAMESPACE-NAME.
  std::string cluster_path(const std::string& kind, const std::string& name = "") const {
    return kKueueApi + kind + "/" + ns_ + (name.empty() ? "" : "-" + name);
  }
  std::string local_queue_path() const {
    return std::string{kKueueApi} + "namespaces/" + ns_ + "/localqueues/" + ns_;
  }
  json kueue_object(const std::string& kind, const json& spec) const {
    json object{{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                {"kind", kind},
                {"metadata", {{"name", ns_}}}};
    if (!spec.is_null()) object["spec"] = spec;
    return object;
  }
  // A queue of `cpus` CPUs, of nodes that this test has. Quota counts requests of CPUs, not
  // turns.
  void make_queue(int cpus) {
    apply(kueue_object("ResourceFlavor", json::object()));
    const json quota{{"name", "cpu"}, {"nominalQuota", cpus}};
    apply(kueue_object(
        "ClusterQueue",
        {{"namespaceSelector", json::object()},
         // Jobs of higher priority may push out others of the same queue.
         {"preemption", {{"withinClusterQueue", "LowerPriority"}}},
         {"resourceGroups",
          {{{"coveredResources", {"cpu"}},
            {"flavors", {{{"name", ns_}, {"resources", json::array({quota})}}}}}}}}));
    json local = kueue_object("LocalQueue", {{"clusterQueue", ns_}});
    local["metadata"]["namespace"] = ns_;
    apply(local);
  }
  void make_priority(const std::string& name, int value) {
    json object = kueue_object("WorkloadPriorityClass", nullptr);
    object["metadata"]["name"] = ns_ + "-" + name;
    object["value"] = value;
    const auto made =
        call(kube::Method::kPost, std::string{kKueueApi} + "workloadpriorityclasses", object);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  // With the queue's label; each pod counts one CPU.
  json in_queue(json job, const std::string& priority = "") const {
    json& labels = job["metadata"]["labels"];
    labels["kueue.x-k8s.io/queue-name"] = ns_;
    if (!priority.empty()) labels["kueue.x-k8s.io/priority-class"] = ns_ + "-" + priority;
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "1"}}}};
    return job;
  }
  // Kueue has no room for it: it is suspended and has no place in our queue.
  void expect_kept_out(const std::string& name) {
    ASSERT_NO_FATAL_FAILURE(wait_until(name + " is suspended", [&] {
      return condition(name, "Suspended") == "True: JobSuspended" && pods_of(name).empty();
    }));
    EXPECT_TRUE(get(batch_path(name))["spec"]["suspend"]);
    EXPECT_TRUE(get(job_path(name)).is_null());
  }
  void tell(const std::string& name) { std::ofstream{stamps_in_ + "/" + name} << ""; }
  static std::string until_told(const std::string& name) {
    return "until [ -e /stamps/" + name + " ]; do sleep 0.2; done";
  }
};

// Two gangs, quota for one: the second one waits in Kueue, and comes to our queue when the first
// one has ended.
TEST_F(Kueue, KeepsAJobOutUntilThereIsQuota) {
  ASSERT_NO_FATAL_FAILURE(make_queue(3));
  ASSERT_NO_FATAL_FAILURE(apply(in_queue(batch_job("first", 2, until_told("end")))));
  ASSERT_NO_FATAL_FAILURE(wait_active("first", 2));
  ASSERT_NO_FATAL_FAILURE(apply(in_queue(batch_job("second", 2, "sleep 1"))));
  ASSERT_NO_FATAL_FAILURE(expect_kept_out("second"));
  // Long enough for a mistake of either side to show.
  pass(seconds{3});
  ASSERT_NO_FATAL_FAILURE(expect_kept_out("second"));
  tell("end");
  ASSERT_EQ(wait_for("first", "Complete").exit_code, 0);
  ASSERT_EQ(wait_for("second", "Complete").exit_code, 0);
  // It was not started and taken back before.
  EXPECT_EQ(job("second").status.starts, 1);
}

// Both fit into the quota and share their nodes: Kueue lets them in, and they take turns.
TEST_F(Kueue, LetsInWhatTakesTurns) {
  ASSERT_NO_FATAL_FAILURE(make_queue(6));
  for (const char* name : {"one", "two"}) {
    ASSERT_NO_FATAL_FAILURE(apply(in_queue(batch_job(name, 3, ""))));
  }
  for (const char* name : {"one", "two"}) ASSERT_NO_FATAL_FAILURE(wait_active(name, 3));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"one", "two"}));
}

// Kueue preempts by suspending: the whole gang ends, gives up its place, and begins again when
// there is quota again.
TEST_F(Kueue, StopsAGangForAJobOfHigherPriority) {
  ASSERT_NO_FATAL_FAILURE(make_queue(3));
  ASSERT_NO_FATAL_FAILURE(make_priority("low", 1));
  ASSERT_NO_FATAL_FAILURE(make_priority("high", 2));
  ASSERT_NO_FATAL_FAILURE(apply(in_queue(batch_job("lower", 2, until_told("end")), "low")));
  ASSERT_NO_FATAL_FAILURE(wait_active("lower", 2));
  const std::string first = get(job_path("lower"))["metadata"]["uid"];
  ASSERT_NO_FATAL_FAILURE(apply(in_queue(batch_job("higher", 3, until_told("go")), "high")));
  ASSERT_NO_FATAL_FAILURE(wait_active("higher", 3));
  ASSERT_NO_FATAL_FAILURE(expect_kept_out("lower"));
  // A suspension is not a failure: it must not use up the Job's retries.
  EXPECT_EQ(count("lower", "failed"), 0);
  tell("go");
  ASSERT_EQ(wait_for("higher", "Complete").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_active("lower", 2));
  EXPECT_NE(get(job_path("lower"))["metadata"]["uid"], first);
  tell("end");
  ASSERT_EQ(wait_for("lower", "Complete").exit_code, 0);
}

// The example's objects have names of their own in the cluster, which they lose here.
TEST_F(Kueue, RunsTheExample) {
  ASSERT_NO_FATAL_FAILURE(apply_example("kueue.yaml", [&](json& object) {
    if (object["kind"] != "Job") object["metadata"]["name"] = ns_;
    if (object["kind"] == "ClusterQueue") {
      object["spec"]["resourceGroups"][0]["flavors"][0]["name"] = ns_;
    }
    if (object["kind"] == "LocalQueue") object["spec"]["clusterQueue"] = ns_;
    if (object["kind"] == "Job") {
      object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = ns_;
    }
  }));
  for (const char* name : {"train-1", "train-2"}) {
    EXPECT_EQ(wait_for(name, "Complete").exit_code, 0);
  }
  // The quota of the example holds one of the two at a time.
  EXPECT_GE(status("train-2")["startTime"].get<std::string>(),
            status("train-1")["completionTime"].get<std::string>());
}

}  // namespace
}  // namespace kubernetes
