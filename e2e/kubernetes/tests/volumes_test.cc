// Pods with claims: kubegang chooses the node, and the real kube-scheduler binds the volume
// and the pod there. Its sentences alone show why it cannot bind a pod
// (operator/gang/pod_pin.cc).
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class Volumes : public Cluster {
 protected:
  void TearDown() override {
    (void)call(kube::Method::kDelete, "/api/v1/persistentvolumes/" + name_of("data"));
    (void)call(kube::Method::kDelete, "/apis/storage.k8s.io/v1/storageclasses/" + name_of("local"));
    Cluster::TearDown();
  }
  // A volume of the node, and a claim that binds when a pod that uses it has a node.
  void make_volume_on(int place) {
    const auto made = call(kube::Method::kPost, "/apis/storage.k8s.io/v1/storageclasses",
                           {{"apiVersion", "storage.k8s.io/v1"},
                            {"kind", "StorageClass"},
                            {"metadata", {{"name", name_of("local")}}},
                            {"provisioner", "kubernetes.io/no-provisioner"},
                            {"volumeBindingMode", "WaitForFirstConsumer"}});
    ASSERT_TRUE(made.ok()) << made.error().message;
    const json term{
        {"matchExpressions",
         {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {node(place)}}}}}};
    ASSERT_NO_FATAL_FAILURE(
        apply({{"apiVersion", "v1"},
               {"kind", "PersistentVolume"},
               {"metadata", {{"name", name_of("data")}}},
               {"spec",
                {{"capacity", {{"storage", "1Gi"}}},
                 {"accessModes", {"ReadWriteOnce"}},
                 {"storageClassName", name_of("local")},
                 {"hostPath", {{"path", "/tmp/" + name_of("data")}, {"type", "DirectoryOrCreate"}}},
                 {"nodeAffinity", {{"required", {{"nodeSelectorTerms", {term}}}}}}}}}));
    ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                   {"kind", "PersistentVolumeClaim"},
                                   {"metadata", {{"name", "data"}, {"namespace", ns_}}},
                                   {"spec",
                                    {{"storageClassName", name_of("local")},
                                     {"accessModes", {"ReadWriteOnce"}},
                                     {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}));
  }
  // A job of one node that uses the claim "data".
  void submit_with_claim(const std::string& name, const json& placement = json::object()) {
    JobOptions options{.name = name, .nodes_count = 1};
    json spec = pod_spec_of(options);
    spec["volumes"].push_back(
        {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}});
    spec["containers"][0]["volumeMounts"].push_back({{"name", "data"}, {"mountPath", "/data"}});
    options.patch = {{"spec", {{"placement", placement}, {"template", {{"spec", spec}}}}}};
    submit(options);
  }
  std::string node_of_pod(const std::string& name) {
    const std::vector<json> all = pods(name);
    return all.size() == 1 ? all[0]["spec"].value("nodeName", "") : "";
  }
};

// The first node that kubegang takes is one that the volume cannot reach: its pod is not bound
// within a minute, the start is undone, and the job gets the others one after the other.
TEST_F(Volumes, AJobComesToTheNodeWhereItsVolumeBinds) {
  ASSERT_NO_FATAL_FAILURE(make_volume_on(2));
  ASSERT_NO_FATAL_FAILURE(submit_with_claim("writer"));
  wait_until(
      "it is ready", [&] { return is_ready("writer"); }, std::chrono::seconds{180});
  EXPECT_EQ(node_of_pod("writer"), node(2));
  const json claim = get("/api/v1/namespaces/" + ns_ + "/persistentvolumeclaims/data");
  EXPECT_EQ(claim["status"].value("phase", ""), "Bound") << claim.dump(1);
}

// No node would help: a person must make the claim.
TEST_F(Volumes, AMissingClaimHoldsTheJob) {
  ASSERT_NO_FATAL_FAILURE(submit_with_claim("reader"));
  wait_until(
      "it is held", [&] { return job("reader").status.held.has_value(); },
      std::chrono::seconds{120});
  EXPECT_NE(job("reader").status.message.find("persistentvolumeclaim \"data\" not found"),
            std::string::npos)
      << status_text("reader");
  EXPECT_TRUE(pods("reader").empty());
  ASSERT_NO_FATAL_FAILURE(make_volume_on(1));
  // As its user would, once the claim is there.
  patch(job_path("reader"),
        {{"spec", {{"placement", {{"hostlist", node(1)}}}, {"control", {{"releaseRequest", 1}}}}}});
  wait_until(
      "it is ready", [&] { return is_ready("reader"); }, std::chrono::seconds{180});
}

}  // namespace
}  // namespace kubernetes
