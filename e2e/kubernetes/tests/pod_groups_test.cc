// Gated pods that name a PodGroup of the coscheduling plugin, with the real kube-scheduler,
// kubelets and admission policies. The kind is by the plugin's own definition (pod-groups-up); the
// plugin does not run.
#include "e2e/kubernetes/tests/gated_pods.h"

namespace kubernetes {
namespace {

class PodGroups : public GatedPods {
 protected:
  PodGroups() { gang_label_ = "scheduling.x-k8s.io/pod-group"; }

  json group(const std::string& name, int min_member) const {
    return {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
            {"kind", "PodGroup"},
            {"metadata", {{"name", name}, {"namespace", ns_}}},
            {"spec", {{"minMember", min_member}}}};
  }
  // Only the PodGroup says how many pods there are; each has a node of its own.
  json pod_of_group(const std::string& name, int index, const std::string& script) const {
    json object = pod(name, index, kNodesCount, script);
    object["metadata"]["annotations"].erase("kubegang.io/pods");
    return object;
  }
};

// 1. two of three pods are there, and no PodGroup: they wait for it
// 2. it comes, and asks for three: they wait for pods
// 3. the third comes: a Job stands for them, they run, and take turns
// 4. the PodGroup goes, and they take turns as before
// 5. the pods are deleted, and the Job with them
TEST_F(PodGroups, TakeTurnsWithAGangOfOurs) {
  ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "other"}));
  for (int i : {0, 1}) {
    ASSERT_NO_FATAL_FAILURE(apply(pod_of_group("train", i, "")));
  }
  ASSERT_NO_FATAL_FAILURE(wait_until("a pod waits for its PodGroup", [&] {
    return waits_for("train", 0) == "WaitingForPodGroup";
  }));
  ASSERT_NO_FATAL_FAILURE(apply(group("train", 3)));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "a pod waits for others", [&] { return waits_for("train", 0) == "WaitingForPods"; }));
  EXPECT_TRUE(job_of("train").is_null());
  ASSERT_NO_FATAL_FAILURE(apply(pod_of_group("train", 2, "")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its Job exists", [&] { return !job_of("train").is_null(); }));
  EXPECT_EQ(job_of("train")["spec"]["adopted"].size(), 3U);
  ASSERT_NO_FATAL_FAILURE(wait_ready(name_of_job("train")));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods say no more that they wait",
                                     [&] { return waits_for("train", 0).empty(); }));
  remove("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/" + ns_ + "/podgroups/train");
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"train", "other"}));
  remove(all_pods());
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the Job goes with its pods", [&] { return job_of("train").is_null(); }));
}

// The policy of our own label holds for the plugin's where the gate is, and nowhere else.
TEST_F(PodGroups, CannotBeChangedByTheAuthorOfAGatedPod) {
  ASSERT_NO_FATAL_FAILURE(apply(pod_of_group("late", 0, "")));
  json free = pod_of_group("free", 0, "sleep 1000");
  free["spec"].erase("schedulingGates");
  free["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node(1)}};
  ASSERT_NO_FATAL_FAILURE(apply(free));
  const json other{{"metadata", {{"labels", {{gang_label_, "other"}}}}}};
  const auto refused = call(kube::Method::kPatch, all_pods() + "/late-pods-0", other);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("cannot change; create another pod"), std::string::npos);
  const auto taken = call(kube::Method::kPatch, all_pods() + "/free-pods-0", other);
  EXPECT_TRUE(taken.ok()) << taken.error().message;
}

TEST_F(PodGroups, AsInTheExampleRun) {
  const auto shorter = [](json& object) {
    if (object["kind"] == "Pod") object["spec"]["containers"][0]["command"] = {"sleep", "2"};
  };
  ASSERT_NO_FATAL_FAILURE(apply_example("pod-group.yaml", shorter));
  ASSERT_NO_FATAL_FAILURE(wait_gang("sweep", "Completed"));
  EXPECT_EQ(job_of("sweep")["spec"]["adopted"].size(), 2U);
}

}  // namespace
}  // namespace kubernetes
