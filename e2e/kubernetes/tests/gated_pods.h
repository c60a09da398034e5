// A fixture for pods that others create: pods behind the scheduling gate kubegang.io/gang, and the
// kubegang Job that stands for a gang of them, which bears the label that names the gang.
#pragma once

#include <string>

#include "e2e/kubernetes/tests/batch_jobs.h"

namespace kubernetes {

class GatedPods : public BatchJobs {
 protected:
  // Removes all pods of the test: nothing else deletes them.
  void TearDown() override;

  std::string all_pods() const { return "/api/v1/namespaces/" + ns_ + "/pods"; }
  // For a gang of as many nodes as pods. `script` empty: the probe.
  json pod_template(const std::string& gang, int pods, const std::string& script) const;
  // Called GANG-pods-0, ….
  json pod(const std::string& gang, int index, int pods, const std::string& script) const;
  void create_gang(const std::string& gang, int pods, const std::string& script);
  json pod_object(const std::string& gang, int index);

  // Returns the gang's Job; null if there is none.
  json job_of(const std::string& gang);
  std::string name_of_job(const std::string& gang);
  void wait_gang(const std::string& gang, const std::string& state);
  // Returns the reason of the pod's condition kubegang.io/Waiting; "" if it has none.
  std::string waits_for(const std::string& gang, int index);

  std::string gang_label_ = "kubegang.io/job-name";
};

}  // namespace kubernetes
