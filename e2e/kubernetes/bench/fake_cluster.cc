#include "e2e/kubernetes/bench/fake_cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "e2e/kubernetes/bench/shape.h"
#include "kube/api/node.h"

namespace kubernetes_bench {

using base::Status;
using kube::Method;
using nlohmann::json;

// Makes the nodes k1 to k<count>, all alike, without any machine behind them. 110 pods are
// kubelet's usual limit; no shape comes near it.
Status make_nodes(BenchApi& api, int count) {
  std::vector<json> nodes;
  const json capacity{{"cpu", std::to_string(kCoresPerNode)}, {"memory", "128Gi"}, {"pods", "110"}};
  for (int n = 1; n <= count; ++n) {
    const std::string name = "k" + std::to_string(n);
    nodes.push_back(
        {{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata",
          {{"name", name},
           // KWOK runs the nodes that have this annotation: it makes them Ready and their pods
           // Running.
           {"annotations", {{"kwok.x-k8s.io/node", "fake"}}},
           {"labels", {{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}}}}},
         {"status", {{"capacity", capacity}, {"allocatable", capacity}}}});
  }
  if (Status made = api.create_all("/api/v1/nodes", nodes); !made.ok()) return made;
  return api.wait_until("all nodes are Ready", [&] {
    const auto list = api.call(Method::kGet, "/api/v1/nodes");
    if (!list.ok()) return false;
    return std::all_of((*list)["items"].begin(), (*list)["items"].end(), [](const json& object) {
      const auto node = kube::decode<kube::Node>(object);
      // New nodes have a taint until they are ready; pods would not be bound to them.
      return node.ok() && kube::is_true(node->status.conditions, "Ready") &&
             node->spec.taints.empty();
    });
  });
}

// Makes one for each way to measure, so that the rest of one is not in the lists of another.
Status make_namespaces(BenchApi& api) {
  for (const char* ns : {kGang, kTurns, kLimit, kLimitJobs, kBatch, kAdopted, kClaim}) {
    if (Status made = api.make_namespace(ns); !made.ok()) return made;
  }
  return {};
}

// Returns the configuration of all measurements: cores are shared out, memory is not managed. The
// narrow partition has one node, which one job takes for itself (many_jobs.h).
Status make_objects(BenchApi& api, int nodes_count) {
  const std::string path = "/apis/kubegang.io/v1alpha1/";
  auto made = api.call(
      Method::kPost, path + "schedulerconfigs",
      {{"apiVersion", "kubegang.io/v1alpha1"},
       {"kind", "SchedulerConfig"},
       {"metadata", {{"name", "default"}}},
       {"spec", {{"select", {{"type", "ConsTres"}, {"unit", "Core"}, {"memory", false}}}}}});
  if (!made.ok()) return made.error();
  const auto make_partition = [&](const char* name, const std::string& nodes,
                                  const json& over_subscribe) {
    return api
        .call(Method::kPost, path + "partitions",
              {{"apiVersion", "kubegang.io/v1alpha1"},
               {"kind", "Partition"},
               {"metadata", {{"name", name}}},
               {"spec", {{"nodes", {{"hostlist", nodes}}}, {"overSubscribe", over_subscribe}}}})
        .status();
  };
  if (Status s = make_partition(kPartition, "k[1-" + std::to_string(nodes_count) + "]",
                                {{"policy", "Never"}});
      !s.ok()) {
    return s;
  }
  return make_partition(kNarrowPartition, "k1", {{"policy", "Exclusive"}});
}

// With maxShare 2 any two jobs may be stacked on a core, so every node needs a timetable.
Status allow_turns(BenchApi& api, bool allowed) {
  const json policy = allowed ? json{{"policy", "Force"}, {"maxShare", 2}}
                              // A merge patch: null removes the field, which the policy Never
                              // forbids.
                              : json{{"policy", "Never"}, {"maxShare", nullptr}};
  return api
      .call(Method::kPatch, std::string{"/apis/kubegang.io/v1alpha1/partitions/"} + kPartition,
            {{"spec", {{"overSubscribe", policy}}}})
      .status();
}

// No image is ever pulled and no command run.
// As small as a pod can be: what its users would add costs each way the same.
json container(const json& requests) {
  json out{{"name", "main"}, {"image", "registry.e2e/none:1"}, {"command", {"work"}}};
  if (!requests.is_null()) out["resources"] = {{"requests", requests}};
  return out;
}

// `spec` is merged over the defaults.
json gang_job(const std::string& ns, const std::string& name, const json& spec) {
  json object{
      {"apiVersion", "kubegang.io/v1alpha1"},
      {"kind", "Job"},
      {"metadata", {{"name", name}, {"namespace", ns}}},
      {"spec",
       {{"network", "None"}, {"template", {{"spec", {{"containers", {container(nullptr)}}}}}}}}};
  object["spec"].merge_patch(spec);
  return object;
}

}  // namespace kubernetes_bench
