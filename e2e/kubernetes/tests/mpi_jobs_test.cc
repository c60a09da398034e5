// MPIJobs with Kubeflow's own MPI operator, whose pods wait behind our scheduling gate. No program
// of MPI is here: a launcher that only waits and workers that only run are the same pods.
#include <fstream>

#include "e2e/kubernetes/tests/gated_pods.h"

namespace kubernetes {
namespace {

// Goal: MPI programs need launcher and workers to run at the same time. Kubeflow's operator makes
// them as separate pods and knows nothing of gangs.
class MpiJobs : public GatedPods {
 protected:
  // Their controller would make their pods again.
  void TearDown() override {
    if (!ns_.empty()) {
      if (HasFailure()) {
        std::printf("%s", run_shell(kubectl("get mpijobs,jobs -o yaml -n " + ns_)).text.c_str());
      }
      remove(path(), {{"propagationPolicy", "Background"}});
      (void)comes_true([&] { return list("/apis/batch/v1/namespaces/" + ns_ + "/jobs").empty(); },
                       kPatience);
    }
    GatedPods::TearDown();
  }

  std::string path(const std::string& name = "") const {
    return "/apis/kubeflow.org/v2beta1/namespaces/" + ns_ + "/mpijobs" +
           (name.empty() ? "" : "/" + name);
  }
  // `more` is merged over the spec. A failed launcher fails the MPIJob at once.
  json mpi_job(const std::string& name, const json& launcher, const json& worker, int workers,
               const json& more = json::object()) const {
    json object{{"apiVersion", "kubeflow.org/v2beta1"},
                {"kind", "MPIJob"},
                {"metadata", {{"name", name}, {"namespace", ns_}}},
                {"spec",
                 {{"runPolicy", {{"cleanPodPolicy", "Running"}, {"backoffLimit", 0}}},
                  {"mpiReplicaSpecs",
                   {{"Launcher", replicas(1, launcher)}, {"Worker", replicas(workers, worker)}}}}}};
    object["spec"].merge_patch(more);
    return object;
  }
  // Returns a launcher until the test says so, and two workers on the other nodes, as one gang.
  json mpi_job(const std::string& name, const json& more = json::object()) const {
    const std::string until_told = "until [ -e /stamps/end ]; do sleep 0.2; done";
    return mpi_job(name, pod_template(name, 3, until_told), pod_template(name, 3, ""), 2, more);
  }
  void tell_launcher() { std::ofstream{stamps_in_ + "/end"} << ""; }
  static json replicas(int count, json pod_template) {
    pod_template["spec"].erase("restartPolicy");  // the kind's own field decides
    return {{"replicas", count}, {"restartPolicy", "Never"}, {"template", pod_template}};
  }

  Output wait_for_mpi_job(const std::string& name, const std::string& type) {
    return run_shell(
        kubectl("wait --for=condition=" + type + " --timeout=120s -n " + ns_ + " mpijob/" + name));
  }
  // By Kubeflow's own labels.
  std::vector<json> workers_of(const std::string& name) {
    return list(all_pods() + "?labelSelector=training.kubeflow.org/job-role=worker," +
                "training.kubeflow.org/job-name=" + name);
  }
};

// Launcher and workers are pods of two kinds that another operator creates; all three together are
// one gang, which takes turns with a kubegang job. The launcher's end ends the MPIJob, and with it
// the gang.
TEST_F(MpiJobs, TakeTurnsAsOneGang) {
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other"}));
  ASSERT_NO_FATAL_FAILURE(apply(mpi_job("mpi")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("mpi").is_null(); }));
  EXPECT_EQ(job_of("mpi")["spec"]["adopted"].size(), 3U) << "the launcher is one of them";
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("mpi")));
  ASSERT_EQ(wait_for_mpi_job("mpi", "Running").exit_code, 0);
  std::vector<std::string> of_workers;
  for (const json& worker : workers_of("mpi")) of_workers.push_back(worker["spec"]["nodeName"]);
  ASSERT_EQ(of_workers.size(), 2U);
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"mpi", "other"}, of_workers));
  tell_launcher();
  ASSERT_EQ(wait_for_mpi_job("mpi", "Succeeded").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("mpi", "Completed"));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("its workers are deleted", [&] { return workers_of("mpi").empty(); }));
}

// A user cancels with our plugin, and Kubeflow's operator hears of it as of any failed pod.
TEST_F(MpiJobs, FailWhenTheirGangIsCancelled) {
  ASSERT_NO_FATAL_FAILURE(apply(mpi_job("mpi")));
  ASSERT_NO_FATAL_FAILURE(wait_gang("mpi", "Running"));
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("mpi")));
  const Output cancelled = run_shell(kubectl_gang("cancel -n " + ns_ + " " + name_of_job("mpi")));
  ASSERT_EQ(cancelled.exit_code, 0) << cancelled.text;
  ASSERT_EQ(wait_for_mpi_job("mpi", "Failed").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("mpi", "Cancelled"));
}

// Their pods go, and the gang's Job with them; when they are resumed, other pods queue again.
TEST_F(MpiJobs, HaveNoPodsWhileTheyAreSuspended) {
  ASSERT_NO_FATAL_FAILURE(apply(mpi_job("mpi")));
  ASSERT_NO_FATAL_FAILURE(wait_gang("mpi", "Running"));
  const std::string first = name_of_job("mpi");
  patch(path("mpi"), {{"spec", {{"runPolicy", {{"suspend", true}}}}}});
  ASSERT_EQ(wait_for_mpi_job("mpi", "Suspended").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "its gang is gone", [&] { return list(all_pods()).empty() && job_of("mpi").is_null(); }));
  patch(path("mpi"), {{"spec", {{"runPolicy", {{"suspend", false}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_gang("mpi", "Running"));
  EXPECT_NE(name_of_job("mpi"), first);
  tell_launcher();
  ASSERT_EQ(wait_for_mpi_job("mpi", "Succeeded").exit_code, 0);
}

// Then it waits until the workers run, is an ordinary pod, and never stands still.
TEST_F(MpiJobs, MayLeaveTheirLauncherOut) {
  json launcher = pod_template("mpi", 2, "sleep 2");
  launcher.erase("metadata");
  launcher["spec"].erase("schedulingGates");
  launcher["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node(1)}};
  ASSERT_NO_FATAL_FAILURE(apply(mpi_job("mpi", launcher, pod_template("mpi", 2, ""), 2,
                                        {{"launcherCreationPolicy", "WaitForWorkersReady"}})));
  ASSERT_EQ(wait_for_mpi_job("mpi", "Succeeded").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the gang's Job goes with the workers", [&] { return job_of("mpi").is_null(); }));
}

// The example calls mpirun and sshd, which the test's image lacks. The stand-ins still check what
// MPI would need: the host file names both workers.
TEST_F(MpiJobs, AsInTheExampleRun) {
  const auto with_stand_ins = [](json& object) {
    json& specs = object["spec"]["mpiReplicaSpecs"];
    for (const char* role : {"Launcher", "Worker"}) {
      json& container = specs[role]["template"]["spec"]["containers"][0];
      const bool launches = std::string{role} == "Launcher";
      ASSERT_EQ(container["command"][0], launches ? "mpirun" : "/usr/sbin/sshd");
      container.erase("args");
      const std::string workers = "\"$(grep -c pi-worker- /etc/mpi/hostfile)\"";
      container["command"] = {"sh", "-c",
                              launches ? "sleep 2; [ " + workers + " = 2 ]" : "exec sleep 1000"};
    }
  };
  ASSERT_NO_FATAL_FAILURE(apply_example("mpi-job.yaml", with_stand_ins));
  ASSERT_EQ(wait_for_mpi_job("pi", "Succeeded").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_gang("pi", "Completed"));
}

}  // namespace
}  // namespace kubernetes
