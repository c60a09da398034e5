// srun outside of a job, through a real API server: its job's first pod is entered by pods/exec,
// over API server, kubelet and containerd. The namespace enforces `restricted`, and its pods have a
// home.
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "e2e/kubernetes/tests/batch_scripts.h"

namespace kubernetes {
namespace {

class RemoteSteps : public PodDefaults {
 protected:
  void SetUp() override {
    PodDefaults::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(give_home());
    ASSERT_NO_FATAL_FAILURE(give_identity());
    ::signal(SIGPIPE, SIG_IGN);  // of `input`
    const Output made = run_shell(
        "cd " + stamps_in_ + " && ln -s " KUBEGANG_BINARY_DIR "/bin/kubectl-gang srun && " +
        kubectl("config view --raw --flatten >config && kubectl --kubeconfig config "
                "config set-context --current --namespace=" +
                ns_) +
        " && mkfifo input");
    ASSERT_EQ(made.exit_code, 0) << made.text;
  }

  // A shell's processes in the background would not hear SIGINT without job control.
  std::jthread begin(const std::string& before, const std::string& arguments,
                     const std::string& after = "") {
    return std::jthread{
        [this, text = "cd " + stamps_in_ + "; export KUBECONFIG=$PWD/config; " + before +
                      "./srun -p " + own_partition() + " -J step --image=" + kBusyboxImage + " " +
                      arguments + after] { ended_ = run_shell("bash -c 'set -m; " + text + "'"); }};
  }
  Output run(const std::string& before, const std::string& arguments,
             const std::string& after = "") {
    begin(before, arguments, after).join();
    return ended_;
  }

  // The one job of this namespace.
  json own_job() {
    const std::vector<json> all = list("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs");
    return all.size() == 1 ? all.front() : json::object();
  }
  std::string state() { return own_job().value("/status/state"_json_pointer, ""); }
  void wait_for_begin() {
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the step has begun", [&] { return file_in_home("out") == "begun\n"; }));
  }
  void expect_canceled() {
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the job is canceled", [&] { return state() == "Cancelled"; }));
    ASSERT_NO_FATAL_FAILURE(wait_until(
        "no pod is left", [&] { return list("/api/v1/namespaces/" + ns_ + "/pods").empty(); }));
  }

  Output ended_;
};

TEST_F(RemoteSteps, EndsWithItsInput) {
  const Output both = run("printf \"one\\ntwo\\n\" | ", "-N2 -n2 -l cat 2>err", " | sort");
  EXPECT_EQ(both.text, "0: one\n0: two\n1: one\n1: two\n");
  ASSERT_NO_FATAL_FAILURE(wait_until("the job has ended", [&] { return state() == "Completed"; }));
}

TEST_F(RemoteSteps, EndsWithTheCodeOfItsTask) {
  const Output failed = run("", "sh -c \"echo out; echo err >&2; exit 7\" 2>err");
  EXPECT_EQ(failed.exit_code, 7) << failed.text;
  EXPECT_EQ(failed.text, "out\n");
  EXPECT_NE(file_in_home("err").find("err\n"), std::string::npos) << file_in_home("err");
  ASSERT_NO_FATAL_FAILURE(wait_until("the job has ended", [&] { return state() == "Failed"; }));
}

// SOURCE: srun(1): the first one asks what runs, the second one ends it.
TEST_F(RemoteSteps, TwoInterruptsEndIt) {
  std::jthread srun =
      begin("", "sh -c \"echo begun; sleep 60\" >out 2>err & echo $! >pid; wait $!");
  wait_for_begin();
  const std::string interrupt = "kill -INT $(cat " + stamps_in_ + "/pid)";
  EXPECT_EQ(run_shell(interrupt).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_until("it says what runs", [&] {
    return file_in_home("err").find("interrupt") != std::string::npos;
  }));
  // Within a second of each other, and not of that one.
  EXPECT_EQ(run_shell("sleep 1.5; " + interrupt + "; sleep 0.2; " + interrupt).exit_code, 0);
  srun.join();
  EXPECT_EQ(ended_.exit_code, 130) << file_in_home("err");
  expect_canceled();
}

TEST_F(RemoteSteps, WaitsWhileItsJobStandsStill) {
  std::jthread srun = begin("", "sh -c \"echo begun; cat\" <input >out 2>err");
  {
    std::ofstream input{stamps_in_ + "/input"};
    wait_for_begin();
    const std::string path = "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs/" +
                             own_job()["metadata"]["name"].get<std::string>();
    patch(path, {{"spec", {{"control", {{"suspend", true}}}}}});
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the job is suspended", [&] { return state() == "Suspended"; }));
    // More than the connection holds.
    const std::string line(1023, 'x');
    for (int i = 0; i < 4'096; ++i) {
      if (i == 8) patch(path, {{"spec", {{"control", {{"suspend", false}}}}}});
      input << line << "\n" << std::flush;
    }
  }
  srun.join();
  EXPECT_EQ(ended_.exit_code, 0) << file_in_home("err");
  EXPECT_EQ(file_in_home("out").size(), std::string{"begun\n"}.size() + 4'096 * 1'024);
}

// kubelet is in the way of the connection, and not in that of the pods.
TEST_F(RemoteSteps, ALostConnectionEndsStepAndJob) {
  std::jthread srun = begin("", "sh -c \"echo begun; sleep 60\" >out 2>err");
  wait_for_begin();
  const std::vector<json> pods = list("/api/v1/namespaces/" + ns_ + "/pods");
  ASSERT_EQ(pods.size(), 1U);
  int place = 1;
  while (place < kNodesCount && node(place) != pods[0]["spec"].value("nodeName", "")) ++place;
  EXPECT_EQ(on_node(place, "sh -c 'kill -9 $(cat /run/kubelet.pid)'").exit_code, 0);
  srun.join();
  EXPECT_EQ(ended_.exit_code, 1);
  EXPECT_NE(file_in_home("err").find(" is canceled"), std::string::npos) << file_in_home("err");
  expect_canceled();
  wait_nodes_ready();
}

}  // namespace
}  // namespace kubernetes
