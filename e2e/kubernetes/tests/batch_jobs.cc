#include "e2e/kubernetes/tests/batch_jobs.h"

#include <algorithm>
#include <fstream>

#include "e2e/devcluster/apply.h"

namespace kubernetes {
namespace {

// Exchanges image and partition for this cluster's, wherever they stand in the object.
void set_own(json& value, const std::string& partition) {
  if (value.is_object()) {
    for (const auto& [key, part] : value.items()) {
      if (key == "image" && part.is_string()) part = kBusyboxImage;
      if (key == "kubegang.io/partition") part = partition;
      set_own(part, partition);
    }
  } else if (value.is_array()) {
    for (json& part : value) set_own(part, partition);
  }
}

}  // namespace

// `more` is merged over the spec, so a test can change everything. The template is that of our own
// jobs: the probe stamps alike in both.
json BatchJobs::batch_job(const std::string& name, int pods, const std::string& script,
                          const json& more) const {
  JobOptions options{.name = name};
  if (!script.empty()) options.command = {"sh", "-c", script};
  json pod_template = job_object(options)["spec"]["template"];
  pod_template["spec"]["restartPolicy"] = "Never";
  json object{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata",
               {{"name", name},
                {"namespace", ns_},
                {"annotations",
                 {{"kubegang.io/partition", ns_}, {"kubegang.io/nodes", std::to_string(pods)}}}}},
              {"spec",
               {{"managedBy", "kubegang.io/job"},
                {"completionMode", "Indexed"},
                {"parallelism", pods},
                {"completions", pods},
                {"template", pod_template}}}};
  if (more.is_object()) object["spec"].merge_patch(more);
  return object;
}

std::string BatchJobs::batch_path(const std::string& name) const {
  return "/apis/batch/v1/namespaces/" + ns_ + "/jobs/" + name;
}

json BatchJobs::status(const std::string& name) {
  const json object = get(batch_path(name));
  return object.is_object() ? object.value("status", json::object()) : json::object();
}

// In one text, so that a comparison shows both halves when it fails.
std::string BatchJobs::condition(const std::string& name, const std::string& type) {
  for (const json& each : status(name).value("conditions", json::array())) {
    if (each["type"] == type) {
      return each["status"].get<std::string>() + ": " + each.value("reason", "");
    }
  }
  return "";
}

// By the label that Kubernetes gives to the pods of any Job.
std::vector<json> BatchJobs::pods_of(const std::string& name) {
  return list("/api/v1/namespaces/" + ns_ +
              "/pods?labelSelector=batch.kubernetes.io/job-name=" + name);
}

void BatchJobs::wait_active(const std::string& name, int pods) {
  wait_until(name + " has " + std::to_string(pods) + " active pods",
             [&] { return count(name, "active") == pods; });
}

// kubectl's own idea of "done" is what scripts of users rest on.
Output BatchJobs::wait_for(const std::string& name, const std::string& type) {
  return run_shell(
      kubectl("wait --for=condition=" + type + " --timeout=120s -n " + ns_ + " job/" + name));
}

// Neither our Job nor pods may stay when the batch Job is deleted.
void BatchJobs::expect_gone(const std::string& name) {
  wait_until("the job of " + name + " and its pods are gone",
             [&] { return get(job_path(name)).is_null() && pods_of(name).empty(); });
}

json BatchJobs::as_own(json object) const {
  set_own(object, ns_);
  return object;
}

// With kubectl, as a user would. The example names an image and a partition that this cluster
// lacks, so both are exchanged; all else is as it stands in the file.
void BatchJobs::apply_example(const std::string& file, const std::function<void(json&)>& change) {
  auto objects = devcluster::read_manifests(KUBEGANG_SOURCE_DIR "/examples/batch-jobs/" + file);
  ASSERT_TRUE(objects.ok()) << objects.error().message;
  // As JSON, which kubectl takes like YAML; one object on each line.
  const std::string path = stamps_in_ + "/" + file + ".json";
  std::ofstream out{path};
  for (const json& example : *objects) {
    json object = as_own(example);
    if (change) change(object);
    out << object << "\n";
  }
  out.close();
  const Output applied = run_shell(kubectl("apply -n " + ns_ + " -f " + path));
  ASSERT_EQ(applied.exit_code, 0) << applied.text;
}

// Returns the records that DNS would serve: this cluster has none.
std::vector<std::string> BatchJobs::endpoint_names(const std::string& service) {
  std::vector<std::string> names;
  for (const json& slice :
       list("/apis/discovery.k8s.io/v1/namespaces/" + ns_ +
            "/endpointslices?labelSelector=kubernetes.io/service-name=" + service)) {
    const json endpoints = slice.value("endpoints", json());
    // A slice without endpoints has null there.
    if (!endpoints.is_array()) continue;
    for (const json& endpoint : endpoints) names.push_back(endpoint.value("hostname", ""));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kubernetes
