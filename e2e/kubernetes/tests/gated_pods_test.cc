// Pods that others create, behind the scheduling gate kubegang.io/gang, with the real
// kube-scheduler, kubelets, garbage collector and admission policies.
#include "e2e/kubernetes/tests/gated_pods.h"

#include <fstream>

namespace kubernetes {
namespace {

// 1. two of three pods are there: they wait, and say for what
// 2. the third comes: a Job stands for them, they run, and take turns
// 3. the pods are deleted, and the Job with them
TEST_F(GatedPods, TakeTurnsWithAGangOfOurs) {
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other"}));
  for (int i : {0, 1}) {
    ASSERT_NO_FATAL_FAILURE(apply(pod("train", i, 3, "")));
  }
  ASSERT_NO_FATAL_FAILURE(wait_until("a pod says what it waits for", [&] {
    return waits_for("train", 0) == "WaitingForPods";
  }));
  ASSERT_NO_FATAL_FAILURE(apply(pod("train", 2, 3, "")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("train").is_null(); }));
  const std::string job = name_of_job("train");
  ASSERT_NO_FATAL_FAILURE(wait_ready(job));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  EXPECT_NE(run_shell(kubectl_gang("queue -n " + ns_)).text.find(job), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods say no more that they wait", [&] {
    return waits_for("train", 0).empty();
  }));
  remove(all_pods());
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job goes with its pods", [&] { return job_of("train").is_null(); }));
}

// The Job's end follows from the pods' ends; the pods stay, since kubegang did not make them.
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

// Kubegang may not delete gated pods. It ends them by their deadline, so that their own
// controller sees a failure.
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

// The label that ties a pod to a Job is the operator's alone: with it an author could make another
// one's job end.
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

// As docs/gated-pods.md tells users who give kubegang up.
TEST_F(GatedPods, AreReleasedByTheCommandOfTheDocuments) {
  std::ifstream document{KUBEGANG_SOURCE_DIR "/docs/gated-pods.md"};
  std::string command;
  for (std::string line; std::getline(document, line);) {
    const bool begins = line.find("kubectl get pods -A --field-selector") != line.npos;
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
