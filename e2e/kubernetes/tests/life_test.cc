// The life of a job under a real kubelet: how it ends, what is recorded, what is cleaned up.
#include <algorithm>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class Life : public Cluster {
 protected:
  static std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }
};

// kubelet reports the end as OOMKilled; with restartPolicy Never that is the job's own end and no
// fault of the node, so it has a state of its own.
TEST_F(Life, AProgramThatIsKilledForItsMemoryMakesTheJobOutOfMemory) {
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "greedy",
              .nodes_count = 1,
              .command = shell("sleep 2; exec tail /dev/zero"),
              .patch = {{"spec", {{"resources", {{"memoryPerNode", "32Mi"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it has ended", [&] { return has_ended("greedy"); }));
  EXPECT_EQ(state("greedy"), "OutOfMemory") << status_text("greedy");
}

// Owner references delete pods and Service; the operator takes the pods out of the timetables.
// Nothing may be left of either, or agents would look for pods that do not exist.
TEST_F(Life, ADeletedJobLeavesNothing) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "gone"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("gone"));
  const std::string service = "/api/v1/namespaces/" + ns_ + "/services/gone";
  EXPECT_TRUE(get(service).is_object());
  ASSERT_NO_FATAL_FAILURE(remove(job_path("gone")));
  ASSERT_NO_FATAL_FAILURE(wait_until("pods, Service and timetable entries are gone", [&] {
    if (!pods("gone").empty() || get(service).is_object()) return false;
    const auto all = timetables();
    return std::all_of(all.begin(), all.end(), [&](const kube::NodeTimetable& one) {
      return std::none_of(one.spec.pods.begin(), one.spec.pods.end(),
                          [&](const kube::TimetablePod& pod) { return pod.ns == ns_; });
    });
  }));
}

// The job's headless Service lists all pods, and their network is not cut by being a gang.
TEST_F(Life, PodsOfAGangReachOneAnother) {
  // By the pods' addresses: this cluster has no DNS.
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "talks",
              .command = shell("mkdir /www; echo member-$SLURM_NODEID >/www/index.html; "
                               "exec httpd -f -p 8000 -h /www")}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("talks"));
  // The Service's controller makes them a moment after the pods are ready.
  ASSERT_NO_FATAL_FAILURE(wait_until("the Service has an address of each pod", [&] {
    std::size_t addresses = 0;
    for (const json& slice :
         list("/apis/discovery.k8s.io/v1/namespaces/" + ns_ +
              "/endpointslices?labelSelector=kubernetes.io/service-name=talks")) {
      addresses += slice["endpoints"].size();
    }
    return addresses == 3;
  }));
  const json one = pod_on("talks", node(1)), other = pod_on("talks", node(3));
  const Output answer =
      run_shell(kubectl("exec -n " + ns_ + " " + one["metadata"]["name"].get<std::string>() +
                        " -- sh -c 'printf \"GET / HTTP/1.0\\r\\n\\r\\n\" | nc " +
                        other["status"]["podIP"].get<std::string>() + " 8000'"));
  EXPECT_NE(answer.text.find("member-2"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace kubernetes
