// A fixture for Jobs of the batch group that say managedBy: kubegang.io/job, beside the real
// controllers of Kubernetes (its Job controller, garbage collector, TTL controller and CronJob
// controller) and the real kubectl.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {

class BatchJobs : public Cluster {
 protected:
  // On as many nodes as it has pods. `command` empty: the probe.
  json batch_job(const std::string& name, int pods, const std::string& script,
                 const json& more = nullptr) const;
  std::string batch_path(const std::string& name) const;
  json status(const std::string& name);  // {}: there is no such Job
  // Returns a batch Job's condition: "True: reason", "" if there is none.
  std::string condition(const std::string& name, const std::string& type);
  std::vector<json> pods_of(const std::string& name);
  int count(const std::string& name, const char* counter) { return status(name).value(counter, 0); }
  void wait_active(const std::string& name, int pods);
  // Returns the real kubectl's view of the end.
  Output wait_for(const std::string& name, const std::string& type);
  void expect_gone(const std::string& name);

  // Returns the object with this cluster's image and the test's partition in place of its own.
  json as_own(json object) const;
  // The objects of a file of examples/batch-jobs, as_own(), and with what `change` makes of each.
  void apply_example(const std::string& file, const std::function<void(json&)>& change = {});
  // Returns the host names that the Service's endpoints have, sorted.
  std::vector<std::string> endpoint_names(const std::string& service);
};

}  // namespace kubernetes
