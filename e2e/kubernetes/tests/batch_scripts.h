// Fixtures for batch scripts under a real kubelet: a Pod Security profile that the API server
// enforces in the namespace, a home whose files the test sees, an administrator's pod defaults.
#pragma once

#include <string>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {

class BatchScripts : public Cluster {
 protected:
  static constexpr int kUser = 1000;

  void TearDown() override;

  void enforce(const std::string& profile);
  // A claim "home" whose files this process sees in stamps_in_. The profiles allow claims, and no
  // folders of a node.
  void make_home();

  // Returns a template as `restricted` demands it, with the claim at /home/ann.
  static json restricted_template();
  static json plain_template();
  static json with_image(json pod_template, const std::string& image);
  // Returns the Job; a script without a first line of its own is one of sh.
  json script_job(const std::string& name, const std::string& script, const json& pod_template,
                  const json& patch = json::object()) const;
  void submit_script(const std::string& name, const std::string& script, const json& pod_template,
                     const json& patch = json::object());

  std::string log_of(const std::string& name);
  std::string file_in_home(const std::string& name) const;
};

// The administrator gives the partition an image and a home, and the namespace an identity; its
// pods are then that user's, whatever they say.
class PodDefaults : public BatchScripts {
 protected:
  // With `restricted` enforced.
  void give_home();
  void give_identity();
  // Returns submit's output; the script runs in the home.
  Output submit_with(const std::string& options, const std::string& script);
};

}  // namespace kubernetes
