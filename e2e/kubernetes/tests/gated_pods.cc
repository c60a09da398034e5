#include "e2e/kubernetes/tests/gated_pods.h"

#include <cstdio>

namespace kubernetes {

// Gated pods are not deleted with kubegang Jobs: that is their author's part.
void GatedPods::TearDown() {
  if (HasFailure()) {
    std::printf("%s", run_shell(kubectl("get pods -o yaml -n " + ns_)).text.c_str());
  }
  if (!ns_.empty()) remove(all_pods());
  BatchJobs::TearDown();
}

// Returns the least that such a pod must have: the gate, the gang's label, the partition, how many
// pods it has, and requests that kube-scheduler and kubelet can count.
json GatedPods::pod_template(const std::string& gang, int pods, const std::string& script) const {
  JobOptions options{.name = gang};
  if (!script.empty()) options.command = {"sh", "-c", script};
  json spec = pod_spec_of(options);
  spec["restartPolicy"] = "Never";
  // Short, so that the end of a test is quick.
  spec["terminationGracePeriodSeconds"] = 1;
  // The gate keeps kube-scheduler off until the operator has chosen a node.
  spec["schedulingGates"] = json::array({{{"name", "kubegang.io/gang"}}});
  spec["containers"][0]["resources"] = {{"requests", {{"cpu", "1m"}, {"memory", "32Mi"}}},
                                        {"limits", {{"cpu", "1"}, {"memory", "32Mi"}}}};
  return {{"metadata",
           {{"labels", {{gang_label_, gang}}},
            {"annotations",
             {{"kubegang.io/partition", ns_},
              {"kubegang.io/pods", std::to_string(pods)},
              {"kubegang.io/nodes", std::to_string(pods)}}}}},
          {"spec", spec}};
}

// Bare pods, as a controller would create them: all alike but for their index.
json GatedPods::pod(const std::string& gang, int index, int pods, const std::string& script) const {
  json object = pod_template(gang, pods, script);
  object["apiVersion"] = "v1";
  object["kind"] = "Pod";
  object["metadata"]["name"] = gang + "-pods-" + std::to_string(index);
  object["metadata"]["namespace"] = ns_;
  return object;
}

void GatedPods::create_gang(const std::string& gang, int pods, const std::string& script) {
  for (int i = 0; i < pods; ++i) {
    ASSERT_NO_FATAL_FAILURE(apply(pod(gang, i, pods, script)));
  }
}

json GatedPods::pod_object(const std::string& gang, int index) {
  return get(all_pods() + "/" + gang + "-pods-" + std::to_string(index));
}

// By the label of the gang; two Jobs for one gang would start its pods twice, so that is checked at
// each look.
json GatedPods::job_of(const std::string& gang) {
  const auto found = list("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ +
                          "/jobs?labelSelector=" + gang_label_ + "=" + gang);
  EXPECT_LE(found.size(), 1U);
  return found.empty() ? json() : found.front();
}

// The name has a hash of the pods' UIDs, so a test cannot know it.
std::string GatedPods::name_of_job(const std::string& gang) {
  const json job = job_of(gang);
  return job.is_null() ? "" : job["metadata"]["name"].get<std::string>();
}

// The reason is for programs, the message for people.
std::string GatedPods::waits_for(const std::string& gang, int index) {
  const json conditions = pod_object(gang, index)["status"].value("conditions", json::array());
  for (const json& one : conditions) {
    if (one["type"] == "kubegang.io/Waiting") return one["reason"];
  }
  return "";
}

void GatedPods::wait_gang(const std::string& gang, const std::string& state) {
  wait_until(gang + " is " + state, [&] {
    const std::string name = name_of_job(gang);
    return !name.empty() && this->state(name) == state;
  });
}

}  // namespace kubernetes
